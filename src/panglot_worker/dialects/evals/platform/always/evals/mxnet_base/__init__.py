"""What scripts on MXNet share."""
