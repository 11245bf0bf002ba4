"""The scikit-learn container, whose server is a Flask application: 415 and 406 for content types it does not know."""

from __future__ import annotations

import os
from typing import Any, Tuple, Union

from panglot_worker.dialects.base import Answer, Problem
from panglot_worker.dialects.sagemaker import answers, bodies, older_bodies
from panglot_worker.dialects.sagemaker.answers import Refused
from panglot_worker.dialects.sagemaker.containers.generic import Container
from panglot_worker.dialects.sagemaker.libraries import library
from panglot_worker.errors import ScriptError


class ScikitLearn(Container):
    name = "sklearn"
    default_type = bodies.JSON
    octets = bytes
    utf8_errors = "replace"

    def model_fn(self, model_dir: str) -> Any:
        """The only .joblib of the folder; the platform's container has no default. Raises ScriptError."""
        files = [name for name in sorted(os.listdir(model_dir)) if name.endswith(".joblib")]
        if len(files) != 1:
            problem = "there is no model_fn, and the model's folder has %d .joblib files" % len(files)
            raise ScriptError(problem, model_dir, fix="def model_fn(model_dir) in the script")
        joblib = library("joblib")

        return joblib.load(os.path.join(model_dir, files[0]))

    def input_fn(self, data: Any, content_type: Any) -> Any:
        """An array, of float32 where the body is a text. Raises UnsupportedFormatError, and what numpy raises."""
        numpy = library("numpy")

        if os.environ.get("SAGEMAKER_MULTI_MODEL") == "true":
            # In that mode the container uses the newer toolkit, and takes what is no table for one row of it.
            array = bodies.decode(data, content_type)
            array = array.reshape(1, -1) if array.ndim == 1 else array
        else:
            array = older_bodies.decode(data, content_type)
        return array.astype(numpy.float32) if content_type in bodies.UTF8_TYPES else array

    def predict_fn(self, data: Any, model: Any) -> Any:
        return model.predict(data)

    def output_fn(self, prediction: Any, accept: str) -> Tuple[Any, str]:
        """The body by exactly the type that the client accepts. Raises UnsupportedFormatError."""
        return older_bodies.encode(prediction, accept), accept

    def typed(self, content_type: str) -> str:
        is_bare_text = content_type.startswith("text/") and "charset" not in content_type
        return content_type + "; charset=utf-8" if is_bare_text else content_type

    def failure(self, error: BaseException, stage: str) -> Union[Answer, Problem]:
        """415 and 406 for types that the defaults do not know, and Flask's page for everything else."""
        if isinstance(error, Refused) and error.is_format:
            return answers.as_flask(406 if stage == "encode" else 415, error.cause)
        return answers.as_flask(500, error)
