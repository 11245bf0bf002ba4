"""Workers on the nodes of a Ray cluster: the driver beside the front, and the agent on each node."""
