"""Jobs of a server with several fronts: the first front stores them, the other fronts pass commands to it."""
