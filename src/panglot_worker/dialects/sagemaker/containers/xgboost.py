"""The XGBoost container: bodies become a DMatrix; its server is that of the scikit-learn container."""

from __future__ import annotations

import os
from typing import Any

from panglot_worker.dialects.sagemaker import libsvm
from panglot_worker.dialects.sagemaker.containers.sklearn import ScikitLearn
from panglot_worker.dialects.sagemaker.libraries import library
from panglot_worker.errors import ScriptError

MODEL = "xgboost-model"


class XgBoost(ScikitLearn):
    name = "xgboost"
    takes_arrays = False

    def model_fn(self, model_dir: str) -> Any:
        """The booster in `xgboost-model`, or in the only file of the folder. Raises ScriptError."""
        xgboost = library("xgboost")

        files = sorted(name for name in os.listdir(model_dir) if os.path.isfile(os.path.join(model_dir, name)))
        name = MODEL if MODEL in files else files[0] if len(files) == 1 else ""
        if not name:
            problem = "there is no model_fn, and the model's folder has no %s" % MODEL
            raise ScriptError(problem, model_dir, fix="def model_fn(model_dir) in the script")
        booster = xgboost.Booster()
        booster.load_model(os.path.join(model_dir, name))
        return booster

    def input_fn(self, data: Any, content_type: Any) -> Any:
        return libsvm.decode(data, content_type)

    def predict_fn(self, data: Any, model: Any) -> Any:
        return model.predict(data, validate_features=False)
