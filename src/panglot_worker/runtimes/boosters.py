"""Files of XGBoost and LightGBM: trees over a table of numbers, with the one output `predict`."""

from __future__ import annotations

from typing import Any, Sequence

from panglot_worker.runtimes import probing
from panglot_worker.runtimes.base import FREE, Arrays, ModelFile, ModelRuntime, ModelTensor, datatype_of

INPUT, OUTPUT = "input", "predict"


class Booster(ModelRuntime):
    """Boosted trees. The file names no input, so any name will do."""

    casts = True
    any_name = True
    datatype = "FP32"

    def __init__(self, file: ModelFile) -> None:
        super().__init__(file)
        self.booster = self._opened()
        name = file.inputs[0].name if file.inputs else INPUT
        self.inputs = [ModelTensor(name, self.datatype, [FREE, self._columns()])]
        self.outputs = [ModelTensor(OUTPUT, self.datatype, [FREE])]
        given = self.run(probing.Trial().arrays(self.inputs, 1), (OUTPUT,))[OUTPUT]
        self.outputs = [ModelTensor(OUTPUT, datatype_of(given.dtype), [FREE, *given.shape[1:]])]

    def _opened(self) -> Any:
        try:
            return self._load()
        except Exception as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            said = lines[0][:300] if lines else type(error).__name__
            raise self.file.error("%s cannot load it: %s" % (self.library, said), "save the model again") from None

    library = ""

    def _load(self) -> Any:
        raise NotImplementedError

    def _columns(self) -> int:
        raise NotImplementedError

    def _predict(self, table: Any) -> Any:
        raise NotImplementedError

    def run(self, arrays: Arrays, wanted: Sequence[str]) -> Arrays:
        """The output. Raises what the library raises."""
        import numpy

        return {OUTPUT: numpy.asarray(self._predict(next(iter(arrays.values()))))}


class XGBoost(Booster):
    """A booster saved by save_model."""

    platform = "xgboost_json"
    library = "xgboost"

    def __init__(self, file: ModelFile) -> None:
        self.xgboost = file.library("xgboost")
        super().__init__(file)

    def _load(self) -> Any:
        booster = self.xgboost.Booster()
        booster.load_model(self.file.path)
        booster.set_param({"nthread": self.file.threads, **({"device": "cuda:0"} if self.file.wants_cuda else {})})
        return booster

    def _columns(self) -> int:
        return int(self.booster.num_features())

    def _predict(self, table: Any) -> Any:
        # Predict from a matrix: it needs no names of columns, and checks their number.
        return self.booster.predict(self.xgboost.DMatrix(table, nthread=self.file.threads), validate_features=False)


class LightGBM(Booster):
    """A booster saved by save_model."""

    platform = "lightgbm_text"
    library = "lightgbm"
    datatype = "FP64"

    def __init__(self, file: ModelFile) -> None:
        self.lightgbm = file.library("lightgbm")
        super().__init__(file)

    def _load(self) -> Any:
        return self.lightgbm.Booster(model_file=self.file.path)

    def _columns(self) -> int:
        return int(self.booster.num_feature())

    def _predict(self, table: Any) -> Any:
        return self.booster.predict(table, num_threads=self.file.threads)
