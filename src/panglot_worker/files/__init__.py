"""Files that strangers chose: read within limits, and only below the folders they may be in."""
