"""The base classes of MXNet scripts."""
