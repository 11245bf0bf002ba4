"""The azureml dialect, as the front knows it."""
