"""Sending a recording to another server, and comparing every answer with the recorded one."""
