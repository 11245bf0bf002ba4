"""What scripts import of the PyTorch container."""
