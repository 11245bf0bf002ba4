"""Telling receivers of webhooks about jobs."""
