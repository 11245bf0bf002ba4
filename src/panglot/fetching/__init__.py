"""Fetching what requests name by address, without ever reaching into the network the server stands in.

The rules are those of `panglot_worker.net`. `name_lookup` finds the addresses of a name, `connection` speaks HTTP/1.1
to one that was checked, `fetcher` follows redirects within limits. `engine/pools/fetches.py` does it for calls.
"""
