"""Models without requests have no workers: when they sleep, how they wake, and the memory that they share."""
