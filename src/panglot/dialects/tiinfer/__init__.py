"""The tiinfer dialect, as the front knows it."""
