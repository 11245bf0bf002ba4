"""Memory that front and workers share: who owns which buffer, and what outlives a worker."""
