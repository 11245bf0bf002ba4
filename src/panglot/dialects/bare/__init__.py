"""Model files without a script, as the front knows them."""
