"""Helpers over mxnet, which is imported when one is called."""
