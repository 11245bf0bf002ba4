"""The Open Inference Protocol: its routes and pages, and what it says about models."""
