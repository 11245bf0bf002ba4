"""The servers that a graph names in its own file, and their small HTTP."""
