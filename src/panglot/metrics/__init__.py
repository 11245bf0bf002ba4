"""What a server counts, as Prometheus reads it."""
