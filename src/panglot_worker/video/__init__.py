"""Video: a process per stream decodes, frames cross in shared memory, and their users get BGR arrays.

`decoder` is the program of that process, `decoder_process` the worker's side of it, `memory` the frames they share;
`playback` is one stream from start to end with its retries, `history` the results of its frames.
"""
