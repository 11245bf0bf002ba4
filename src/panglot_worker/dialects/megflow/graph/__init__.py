"""A graph at work: its nodes, the channels between them, and the resources they share."""
