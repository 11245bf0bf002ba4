"""Heads of requests and of answers."""
