"""A worker that runs some of the stages, and what it hands to the workers of the next ones."""
