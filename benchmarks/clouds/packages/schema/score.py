"""A scoring script of Azure ML with decorators: a table in, a list out."""

from __future__ import annotations

from typing import Any

import pandas as pd
from inference_schema.parameter_types.pandas_parameter_type import PandasParameterType
from inference_schema.schema_decorators import input_schema

SAMPLE = pd.DataFrame({"width": [1.0], "height": [2.0], "name": ["box"]})


def init() -> None:
    """There is no model."""


@input_schema("data", PandasParameterType(SAMPLE))
def run(data: Any) -> Any:
    return {"areas": (data["width"] * data["height"]).tolist()}
