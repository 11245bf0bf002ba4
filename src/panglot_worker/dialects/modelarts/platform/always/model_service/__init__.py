"""The package ModelArts scripts import their base classes from."""
