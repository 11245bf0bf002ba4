"""From a command to a running server: the plan, the models it hosts, what it says at the start."""
