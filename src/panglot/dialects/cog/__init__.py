"""Predictors of Cog, the form of models on Replicate: cog.yaml with predict.py."""
