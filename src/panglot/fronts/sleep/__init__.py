"""The sleep of models in a server with several fronts: the parent decides, each front carries it out."""
