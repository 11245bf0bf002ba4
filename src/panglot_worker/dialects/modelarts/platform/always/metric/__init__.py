"""The platform's metrics, as scripts update them."""
