"""Model files of Paddle."""
