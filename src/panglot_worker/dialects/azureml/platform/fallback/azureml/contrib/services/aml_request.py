"""The same as azureml_inference_server_http.api.aml_request, by its older name."""

from azureml_inference_server_http.api.aml_request import AMLRequest, rawhttp

__all__ = ["AMLRequest", "rawhttp"]
