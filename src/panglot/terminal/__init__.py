"""What is shown to people in a terminal."""
