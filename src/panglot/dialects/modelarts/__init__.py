"""The modelarts dialect, as the front knows it."""
