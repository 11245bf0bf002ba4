"""Fetching what requests name by address, without ever reaching into the network the server stands in.

The rules are those of `panglot_worker.net`. `exchange` speaks HTTP/1.1 to an address that was
checked; `fetcher` follows redirects within limits; `calls` does it for the calls of an engine.
"""
