"""Jobs of a server with several fronts: the first front stores them, the others pass commands to it."""
