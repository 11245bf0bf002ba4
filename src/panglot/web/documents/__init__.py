"""The served package as documents: OpenAPI, and the page that shows it."""
