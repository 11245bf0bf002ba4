"""What scripts import of the Hugging Face container."""
