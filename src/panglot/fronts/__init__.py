"""Several fronts for one server: a parent accepts connections and gives them to fronts, which share the workers."""
