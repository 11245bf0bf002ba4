"""Helpers of MXNet scripts."""
