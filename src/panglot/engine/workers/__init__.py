"""The workers of a pool as the front knows them: their links, their lives, their number."""
