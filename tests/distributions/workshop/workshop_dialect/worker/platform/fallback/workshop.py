"""Stands in for the platform's package where that is not installed."""

VERSION = "shim"


def start(config):
    """Start serving: replaced in a worker; in a process that a script starts, nothing is to be done."""
