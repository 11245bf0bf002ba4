"""Models of Triton's Python backend, as the front knows them."""
