"""The additions of `--fronts N` to a server: its start, and everything that fronts share."""
