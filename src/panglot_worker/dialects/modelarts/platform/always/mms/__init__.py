"""The names MXNet scripts import."""
