"""What scripts of the older containers import, where sagemaker-containers is not installed."""
