"""gRPC over HTTP/2 on the front's own loop: no task, future or copy for a small call. See `connection`."""
