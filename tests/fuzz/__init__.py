"""Fuzz targets: one module each, with `WORDS` its inputs are made of and `checking()`, which gives the property.

`test_fuzz.py` drives them by hypothesis and by `corpus/`; `run.py`, which is `make fuzz`, drives them for minutes.
"""
