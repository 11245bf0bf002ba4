"""What people use beside the server: making, checking, measuring and shipping packages."""
