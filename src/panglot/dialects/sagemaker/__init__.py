"""The sagemaker dialect, as the front knows it."""
