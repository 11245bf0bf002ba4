"""A dialect for tests that uses all that a contract can say. Its answers tell what the worker was told."""
