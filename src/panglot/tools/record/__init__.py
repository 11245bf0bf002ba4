"""Recording the traffic of a service: the file, what stays out of it, and the proxy that writes it."""
