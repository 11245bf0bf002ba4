"""`panglot package`: the files that put a package into a container."""
