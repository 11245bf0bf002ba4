"""Recordings of traffic: the file, the redaction, and the tap that finds pairs in the bytes of a connection."""
