"""Which models all fronts of a server serve, and how that changes."""
