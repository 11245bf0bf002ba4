"""The evals dialect, as the front knows it."""
