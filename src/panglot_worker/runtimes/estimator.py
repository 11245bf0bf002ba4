"""Pickled estimators of scikit-learn, and of libraries with its interface. A pickle runs code when it is loaded.

Outputs are named after the methods that give them, as MLServer names them.
"""

from __future__ import annotations

import warnings
from typing import Any, List, Sequence

from panglot_worker.runtimes import probing
from panglot_worker.runtimes.base import FREE, Arrays, ModelFile, ModelRuntime, ModelTensor, datatype_of

METHODS = ("predict", "predict_proba", "transform")
INPUT = "input"


class Estimator(ModelRuntime):
    """Its outputs are those of `predict` and `predict_proba`; of `transform` where it has neither."""

    platform = "sklearn_joblib"
    casts = True
    any_name = True

    def __init__(self, file: ModelFile) -> None:
        super().__init__(file)
        self.estimator = self._loaded()
        self.methods = [name for name in METHODS[:2] if callable(getattr(self.estimator, name, None))]
        if not self.methods and callable(getattr(self.estimator, "transform", None)):
            self.methods = ["transform"]
        if not self.methods:
            kind = type(self.estimator).__name__
            raise file.error("it holds a %s, which has no predict or transform" % kind, "save an estimator")
        self.inputs = [self._input()]
        self.outputs = [ModelTensor(name, "FP64", None) for name in self.methods]
        self._look_at_outputs()

    def _loaded(self) -> Any:
        joblib = self.file.library("joblib")
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                estimator = joblib.load(self.file.path)
        except ModuleNotFoundError as error:
            raise self.file.lacking(str(error.name), "it was saved with %s, which is not installed for %s") from None
        except Exception as error:
            said = " ".join(("%s: %s" % (type(error).__name__, error)).split())[:300]
            raise self.file.error("it cannot be unpickled: %s" % said, "save it again by joblib.dump") from None
        for warning in caught:
            print("%s: %s" % (self.file.name, warning.message), flush=True)
        return estimator

    def _input(self) -> ModelTensor:
        """A table of numbers; texts, where the first step of the estimator does not count its columns."""
        declared = self.file.inputs[0] if self.file.inputs else None
        columns = getattr(self.estimator, "n_features_in_", None)
        if declared is not None and declared.datatype:
            return ModelTensor(declared.name, declared.datatype, declared.shape or [FREE])
        name = declared.name if declared is not None else INPUT
        return (
            ModelTensor(name, "BYTES", [FREE]) if columns is None else ModelTensor(name, "FP64", [FREE, int(columns)])
        )

    def _look_at_outputs(self) -> None:
        trial = probing.first_that_runs(self)
        if trial is None:
            return
        given = self.run(trial.arrays(self.inputs, 1), self.methods)
        self.outputs = [ModelTensor(name, datatype_of(array.dtype), [FREE, *array.shape[1:]])
                        for name, array in given.items()]  # fmt: skip

    def run(self, arrays: Arrays, wanted: Sequence[str]) -> Arrays:
        """The wanted outputs. Raises what the estimator raises."""
        import numpy

        table = next(iter(arrays.values()))
        with warnings.catch_warnings():
            # It warns that the model was fitted with names of columns: clients send columns by their order.
            warnings.simplefilter("ignore")
            given = {name: getattr(self.estimator, name)(table) for name in wanted}
        return {name: as_array(value, numpy) for name, value in given.items()}

    def labels(self, output: str) -> List[str]:
        classes = getattr(self.estimator, "classes_", None)
        known = output == "predict_proba" and getattr(classes, "ndim", 0) == 1
        return [str(label) for label in classes] if known and classes is not None else []


def as_array(value: Any, numpy: Any) -> Any:
    """The result of a method as an array. It may be a sparse table, a data frame, or one array for each label."""
    if hasattr(value, "toarray"):
        value = value.toarray()
    if isinstance(value, list) and value and all(hasattr(part, "shape") for part in value):
        value = numpy.stack([numpy.asarray(part) for part in value], axis=1)
    value = numpy.asarray(value)
    return value.astype(object) if value.dtype.kind in "SU" else value
