"""What a container of SageMaker answers to requests: `python sagemaker_original.py KIND FOLDER < requests`.

It runs in an interpreter with the original packages. The requests, and the answers behind the word ANSWERS, are JSON.
"""

from __future__ import annotations

import base64
import collections
import collections.abc
import importlib
import json
import os
import sys
import types
from collections.abc import Callable
from typing import Any

Case = dict[str, Any]
Answer = tuple[int, Any, Any]
"""The status, the content type and the body."""


# Behind the model server: the toolkit, its PyTorch container, its Hugging Face container, or a service of one's own


def toolkit(folder: str) -> Callable[..., Any]:
    return importlib.import_module("sagemaker_inference.transformer").Transformer().transform


def pytorch(folder: str) -> Callable[..., Any]:
    defaults = importlib.import_module("sagemaker_pytorch_serving_container.default_pytorch_inference_handler")
    transformer = importlib.import_module("sagemaker_inference.transformer").Transformer
    return transformer(default_inference_handler=defaults.DefaultPytorchInferenceHandler()).transform


def huggingface(folder: str) -> Callable[..., Any]:
    name = "sagemaker_huggingface_inference_toolkit.handler_service"
    return importlib.import_module(name).HuggingFaceHandlerService().handle


def service(folder: str) -> Callable[..., Any]:
    return importlib.import_module("handler_service").HandlerService().handle


def behind_model_server(handle: Callable[..., Any], folder: str) -> Callable[[Case], Answer]:
    """What answers a request as the model server does with one of these."""
    module = importlib.import_module("mms.context")
    store = importlib.import_module("mms.metrics.metrics_store").MetricsStore
    refused = importlib.import_module("mms.service").PredictionException
    context = module.Context("model", folder, {}, 1, None, "1.1.11")
    if hasattr(getattr(handle, "__self__", None), "initialize"):
        handle.__self__.initialize(context)

    def answer(case: Case) -> Answer:
        context.request_ids = {0: "id"}
        context.request_processor = [module.RequestProcessor(case["headers"])]
        context.metrics = store({0: "id"}, "model")
        try:
            body = handle([{"body": bytearray(base64.b64decode(case["body"]))}], context)[0]
        except refused as error:
            told = {"code": error.error_code, "type": "InternalServerException", "message": error.message}
            return error.error_code, "application/json", json.dumps(told, indent=2, ensure_ascii=False)
        if not isinstance(body, (str, bytes, bytearray)):
            body = json.dumps(body, indent=2)
        return context.get_response_status(0)[0], context.get_response_content_type(0), body

    return answer


# The Flask application of the older containers


def flask(folder: str) -> Callable[[Case], Answer]:
    """What answers a request as the scikit-learn container does, whose defaults over the toolkit are written here."""
    # The toolkit was written for Python 3.9 and older.
    collections.Mapping = collections.abc.Mapping  # type: ignore[attr-defined]
    parts = ("content_types", "encoders", "worker", "env", "transformer")
    given = {name: importlib.import_module(f"sagemaker_containers._{name}") for name in parts}
    encoders, worker, transformer = given["encoders"], given["worker"], given["transformer"]
    framework = types.ModuleType("sagemaker_containers.beta.framework")
    vars(framework).update(given)
    sys.modules[framework.__name__] = framework

    def read(data: Any, kind: str) -> Any:
        array = encoders.decode(data, kind)
        return array.astype("float32") if kind in given["content_types"].UTF8_TYPES else array

    def write(prediction: Any, accept: str) -> Any:
        return worker.Response(encoders.encode(prediction, accept), mimetype=accept)

    transformer.default_input_fn, transformer.default_output_fn = read, write
    transformer.default_predict_fn = lambda data, model: model.predict(data)
    script = importlib.import_module("inference")
    names = ("model_fn", "input_fn", "predict_fn", "output_fn", "transform_fn")
    made = transformer.Transformer(**{name: getattr(script, name, None) for name in names})
    given["env"].model_dir = folder
    made.initialize()
    parameters = getattr(script, "execution_parameters_fn", None)
    application = worker.Worker(made.transform, module_name="inference", execution_parameters_fn=parameters)

    def answer(case: Case) -> Answer:
        request = {"method": case["method"], "headers": case["headers"], "data": base64.b64decode(case["body"])}
        said = application.test_client().open(case["path"], **request)
        return said.status_code, said.headers.get("Content-Type"), said.get_data()

    return answer


def main(kind: str, folder: str) -> None:
    sys.path[0] = os.path.join(folder, "code")
    makers = {"toolkit": toolkit, "pytorch": pytorch, "huggingface": huggingface, "service": service}
    ask = flask(folder) if kind == "flask" else behind_model_server(makers[kind](folder), folder)
    answers = []
    for case in json.load(sys.stdin):
        status, content_type, body = ask(case)
        text = base64.b64encode(body.encode() if isinstance(body, str) else bytes(body)).decode()
        answers.append({"status": status, "type": content_type, "body": text})
    sys.stdout.write("\nANSWERS" + json.dumps(answers))


if __name__ == "__main__":
    main(*sys.argv[1:])
