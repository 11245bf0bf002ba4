"""Helpers of the model, saved with `code_paths`."""
