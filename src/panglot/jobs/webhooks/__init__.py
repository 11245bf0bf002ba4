"""Telling receivers of webhooks what becomes of jobs."""
