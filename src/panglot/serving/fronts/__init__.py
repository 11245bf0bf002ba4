"""What `--fronts N` adds to a server: its start, and what the fronts share."""
