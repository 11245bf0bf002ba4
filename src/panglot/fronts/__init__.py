"""Several fronts for one server: a parent accepts the connections, and each front has its share of the workers."""
