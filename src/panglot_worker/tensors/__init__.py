"""Requests and answers with tensors, for scripts of every dialect."""
