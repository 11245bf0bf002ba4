"""Workers on the nodes of a Ray cluster. Ray places and watches; our own frames carry the calls."""
