"""Where jobs are stored: the thread that owns them, its database, its folder."""
