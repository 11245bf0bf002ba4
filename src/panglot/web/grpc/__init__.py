"""Calls of gRPC: what answers each of them. HTTP/2 carries them."""
