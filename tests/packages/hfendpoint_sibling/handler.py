from embedder import EndpointHandler  # noqa: F401
