"""The paddle dialect, as the front knows it."""
