"""The plain dialect, as the front knows it."""
