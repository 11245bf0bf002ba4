"""Request and answer bodies: JSON, forms, and the schemas that describe them."""
