"""Limits that all fronts of a server keep together: memory of requests, and what keys may use."""
