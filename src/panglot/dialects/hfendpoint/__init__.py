"""Custom handlers of Hugging Face Inference Endpoints."""
