"""Scikit_Learn and XGBoost: the body as bytes, one row of features per object in `data.req_data`."""

from __future__ import annotations

import json
import os
from typing import Any, List

from model_service.model_service import SingleNodeService


class XgSklServingBaseService(SingleNodeService):
    """Loads `model_path` once, with joblib or as an XGBoost booster."""

    def __init__(self, model_path: str) -> None:
        super().__init__("", model_path)
        self.model_path = model_path

    def inference(self, data: Any) -> Any:
        return self._postprocess(self._inference(self._preprocess(data)))

    def _preprocess(self, data: Any) -> Any:
        return [list(row.values()) for row in json.loads(data)["data"]["req_data"]]

    def _inference(self, data: Any) -> Any:
        self.prepare_default_inference()
        model = self._panglot_model
        if type(model).__name__ == "Booster":
            import numpy
            import xgboost

            return model.predict(xgboost.DMatrix(numpy.array(data))).tolist()
        return model.predict(data).tolist()

    def _postprocess(self, data: Any) -> Any:
        return [{"predictresult": value} for value in data]

    def prepare_default_inference(self) -> None:
        """Load what the default `_inference` needs. Raises when the file holds no model."""
        if "_panglot_model" not in self.__dict__:
            self._panglot_model = load(self.model_path)


def load(path: str) -> Any:
    """A model saved with joblib, or a booster saved by XGBoost."""
    if not os.path.isfile(path):
        raise FileNotFoundError("there is no model file at %s" % path)
    reasons: List[str] = []
    for read in (_with_joblib, _with_xgboost):
        try:
            return read(path)
        except ModuleNotFoundError as error:
            if error.name not in ("joblib", "xgboost"):
                raise
            reasons.append("%s is not installed" % error.name)
        except Exception as error:
            reasons.append("%s: %s" % (type(error).__name__, str(error).partition("\n")[0]))
    raise ValueError("%s holds no model: joblib: %s; xgboost: %s" % (path, reasons[0], reasons[1]))


def _with_joblib(path: str) -> Any:
    import joblib

    return joblib.load(path)


def _with_xgboost(path: str) -> Any:
    import xgboost

    booster = xgboost.Booster()
    with open(path, "rb") as file:
        booster.load_model(bytearray(file.read()))
    return booster
