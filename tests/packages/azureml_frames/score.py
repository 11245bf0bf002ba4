"""A decorated script with a table, nested parameters and bytes, as Azure's designer and AutoML write them."""

import pandas as pd
from inference_schema.parameter_types.pandas_parameter_type import PandasParameterType
from inference_schema.parameter_types.standard_py_parameter_type import StandardPythonParameterType
from inference_schema.schema_decorators import input_schema, output_schema

table = PandasParameterType(pd.DataFrame({"age": pd.Series([1], dtype="int64"), "name": pd.Series(["a"])}))
inputs = StandardPythonParameterType({"data": table, "note": "any"})
method = StandardPythonParameterType({"method": StandardPythonParameterType("predict")})


def init():
    pass


@input_schema("Inputs", inputs)
@input_schema("GlobalParameters", method)
@output_schema(StandardPythonParameterType({"Results": [1.0]}))
def run(Inputs, GlobalParameters={"method": "predict"}):  # noqa: B006, N803  as AutoML writes it
    frame = Inputs["data"]
    return {"Results": (frame["age"] * 2).tolist(), "columns": list(frame.columns), **GlobalParameters}
