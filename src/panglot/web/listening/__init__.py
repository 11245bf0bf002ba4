"""Sockets that the server listens on: how connections are accepted, and no longer; TLS."""
