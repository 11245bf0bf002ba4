"""The line to the front: frames, the socket they travel on, and shared memory."""
