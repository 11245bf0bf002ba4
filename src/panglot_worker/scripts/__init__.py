"""A user's script: how it is imported, which names it finds, and how it ends."""
