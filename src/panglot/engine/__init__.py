"""The engine: submit a request, get a reply. See `engine.engine` for its one interface."""
