"""The families of hints: a module reads the values of its family, and knows their schema."""
