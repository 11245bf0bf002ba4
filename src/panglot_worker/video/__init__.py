"""Video: a process per stream decodes, frames cross in shared memory, and whoever wants them gets BGR arrays.

`decoder` is the program of that process, `frames` the worker's side of it, `playing` one stream from start to end with
its retries, `results` what came of its frames.
"""
