"""The models of a server: loading, unloading, and what is known of them."""
