"""Taking items through the stages of a dialect, so that each has its own fate."""
