"""The sleep of models in a server with several fronts: the parent decides, and each front obeys."""
