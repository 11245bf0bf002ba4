"""Processes of this machine: how a worker is started, what it prints, and how all it started ends with it."""
