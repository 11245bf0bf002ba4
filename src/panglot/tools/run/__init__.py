"""`panglot run`: a package's answers to many inputs, without a server."""
