"""The same as azureml_inference_server_http.api.aml_response, by its older name."""

from azureml_inference_server_http.api.aml_response import AMLResponse

__all__ = ["AMLResponse"]
