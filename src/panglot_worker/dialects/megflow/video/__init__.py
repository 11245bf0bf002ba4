"""Frames, images and streams of graphs that take a video."""
