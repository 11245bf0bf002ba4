"""Workers on the nodes of a Ray cluster: the driver beside the front, and the keeper on each node."""
