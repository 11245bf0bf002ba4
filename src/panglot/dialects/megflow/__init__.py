"""The megflow dialect, as the front knows it."""
