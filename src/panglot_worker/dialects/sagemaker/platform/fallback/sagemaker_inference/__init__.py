"""What scripts of SageMaker import of the inference toolkit, where it is not installed."""
