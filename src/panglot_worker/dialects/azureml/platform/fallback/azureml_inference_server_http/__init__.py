"""What scripts import of azureml-inference-server-http, where their environment has not the real one."""

__version__ = "1.5.1"
