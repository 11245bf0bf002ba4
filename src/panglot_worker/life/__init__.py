"""The life of a worker: it starts, loads its script, serves and ends."""
