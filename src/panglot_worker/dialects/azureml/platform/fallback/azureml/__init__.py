"""A part of the SDK's name space: other parts may be installed, and are found beside this one."""

__path__ = __import__("pkgutil").extend_path(__path__, __name__)
__distributions__ = {
    "azureml": "azureml-sdk",
    "azureml.ai": "azureml-ai-monitoring",
    "azureml.automl": "azureml-automl-runtime",
    "azureml.contrib": "azureml-contrib-services",
    "azureml.core": "azureml-core",
    "azureml.monitoring": "azureml-monitoring",
}
"""The distributions that have what is not here."""
