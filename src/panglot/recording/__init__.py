"""Recordings of traffic: the file, what stays out of it, and the tap that finds pairs in the bytes of a connection."""
