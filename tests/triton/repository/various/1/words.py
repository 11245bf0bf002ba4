"""What constructors say of wrong arguments."""

import numpy as np


def tried(call):
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return ""


def said(pb_utils):
    tensor = pb_utils.Tensor("x", np.ones(3, np.float32))

    def request(**more):
        about = {"model_name": "m", "inputs": [tensor], "requested_output_names": ["y"], **more}
        return lambda: pb_utils.InferenceRequest(**about)

    calls = {
        "tensor without a name": lambda: pb_utils.Tensor("", np.ones(1)),
        "tensor of a list": lambda: pb_utils.Tensor("x", [1]),
        "complex tensor": lambda: pb_utils.Tensor("x", np.ones(1, np.complex64)),
        "no capsule": lambda: pb_utils.Tensor.from_dlpack("x", 3),
        "capsule": lambda: pb_utils.Tensor.from_dlpack("x", tensor.to_dlpack()),
        "capsule of text": lambda: pb_utils.Tensor("x", np.array([b"x"], object)).to_dlpack(),
        "columns": lambda: pb_utils.Tensor.from_dlpack("x", np.ones((3, 4), np.float32).T),
        "response with None": lambda: pb_utils.InferenceResponse([None]),
        "response with a text": lambda: pb_utils.InferenceResponse([], "error"),
        "parameter list": lambda: pb_utils.InferenceResponse([], parameters={"a": []}),
        "parameter key": lambda: pb_utils.InferenceResponse([], parameters={1: 1}),
        "request with None": request(inputs=[None]),
        "request without a name": request(model_name=None),
        "request with an empty output": request(requested_output_names=[""]),
        "correlation": request(correlation_id=1.5),
        "code": lambda: pb_utils.TritonError("x", 99),
    }
    return {name: tried(call) for name, call in calls.items()}
