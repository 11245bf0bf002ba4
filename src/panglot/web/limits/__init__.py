"""What clients may use: bytes, connections, time and files, over all listeners."""
