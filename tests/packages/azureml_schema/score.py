"""A decorated script: its parameters are converted by inference_schema, and described by their samples."""

import numpy as np
from inference_schema.parameter_types.numpy_parameter_type import NumpyParameterType
from inference_schema.parameter_types.standard_py_parameter_type import StandardPythonParameterType
from inference_schema.schema_decorators import input_schema, output_schema


def init():
    global factor
    factor = 1.0


@input_schema("data", NumpyParameterType(np.array([[1.0, 2.0]])))
@input_schema("k", StandardPythonParameterType(3))
@output_schema(NumpyParameterType(np.array([4.0])))
def run(data, k=3):
    if k < 0:
        raise ValueError("k is negative")
    return (data.sum(axis=1) * k * factor).tolist()
