"""A dialect that uses what the contract offers beyond stages: scripts that start their server, captured output, ..."""
