"""`panglot bench`: how fast a package or a server answers, and whether it still answers rightly."""
