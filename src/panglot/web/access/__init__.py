"""Who may call what: tokens, sessions, hosts and origins."""
