"""Requests with tensors, the same for every dialect, and requests of several rows."""
