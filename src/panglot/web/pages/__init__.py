"""The pages for people: static files, the figures they show, and how a browser logs in."""
