"""The models of a server: loading and unloading them, and the facts that are stored about them."""
