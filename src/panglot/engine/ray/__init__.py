"""Workers on the nodes of a Ray cluster.

Ray chooses the node and starts an agent there. The agent starts and watches workers; our own frames carry the calls.
"""
