"""Spark_MLlib: a local Spark session, and a saved pipeline model."""

from __future__ import annotations

import json
from typing import Any

from model_service.model_service import SingleNodeService


class SparkServingBaseService(SingleNodeService):
    """`self.spark` is the session. The constructor raises ModuleNotFoundError where there is no pyspark."""

    def __init__(self, model_path: str) -> None:
        super().__init__("", model_path)
        self.model_path = model_path
        self.spark = session()

    def inference(self, data: Any) -> Any:
        return self._postprocess(self._inference(self._preprocess(data)))

    def _preprocess(self, data: Any) -> Any:
        """One row per object in `data.req_data`, as a DataFrame."""
        rows = json.loads(data)["data"]["req_data"]
        return session().createDataFrame([tuple(row.values()) for row in rows], list(rows[0]))

    def _inference(self, data: Any) -> Any:
        self.prepare_default_inference()
        return self._panglot_model.transform(data)

    def _postprocess(self, data: Any) -> Any:
        return [{"predictresult": row.prediction} for row in data.select("prediction").collect()]

    def prepare_default_inference(self) -> None:
        """Load the pipeline the default `_inference` runs."""
        if "_panglot_model" not in self.__dict__:
            from pyspark.ml import PipelineModel

            self._panglot_model = PipelineModel.load(self.model_path)


def session() -> Any:
    from pyspark.sql import SparkSession

    return SparkSession.builder.master("local[*]").appName("model_service").getOrCreate()
