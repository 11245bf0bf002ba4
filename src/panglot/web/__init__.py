"""HTTP: limits, access, routes. Reaches scripts only through the engine's interface."""
