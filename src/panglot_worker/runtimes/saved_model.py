"""SavedModel folders, by TensorFlow: the signature serving_default, or the only one."""

from __future__ import annotations

import contextlib
from typing import Any, Sequence

from panglot_worker.runtimes.base import FREE, Arrays, ModelFile, ModelRuntime, ModelTensor, datatype_of

DEFAULT = "serving_default"


class SignatureOfSavedModel(ModelRuntime):
    """A signature, called by the names of its inputs."""

    platform = "tensorflow_savedmodel"

    def __init__(self, file: ModelFile) -> None:
        super().__init__(file)
        tensorflow = file.library("tensorflow")
        with contextlib.suppress(RuntimeError):
            # Too late where TensorFlow is in use in this process already, as with --inline.
            tensorflow.config.threading.set_intra_op_parallelism_threads(file.threads)
            tensorflow.config.threading.set_inter_op_parallelism_threads(1)
        if file.wants_cuda and not tensorflow.config.list_physical_devices("GPU"):
            raise file.no_cuda("tensorflow")
        self.tensorflow = tensorflow
        # A signature alone does not keep the variables of its model alive.
        self.loaded = self._loaded()
        self.signature = self._signature()
        self.inputs = [self._described(name, spec) for name, spec in self._specs().items()]
        self.outputs = [self._described(name, spec) for name, spec in self.signature.structured_outputs.items()]

    def _loaded(self) -> Any:
        try:
            return self.tensorflow.saved_model.load(self.file.path)
        except Exception as error:
            said = " ".join(str(error).split())[:300]
            raise self.file.error("tensorflow cannot load it: %s" % said, "export it again") from None

    def _signature(self) -> Any:
        signatures = dict(self.loaded.signatures)
        if DEFAULT in signatures or len(signatures) == 1:
            return signatures.get(DEFAULT) or next(iter(signatures.values()))
        names = ", ".join(sorted(signatures)) or "none"
        raise self.file.error("it has no signature %s to call (it has: %s)" % (DEFAULT, names),
                              "export it with one, as model.export() does")  # fmt: skip

    def _specs(self) -> Any:
        return self.signature.structured_input_signature[1]

    def _described(self, name: str, spec: Any) -> ModelTensor:
        datatype = "BF16" if spec.dtype.name == "bfloat16" else "BYTES" if spec.dtype.name == "string" else ""
        datatype = datatype or datatype_of(self._numpy_type(spec.dtype))
        if not datatype:
            raise self.file.error("%s has the type %s, which cannot be sent" % (name, spec.dtype.name))
        rank = spec.shape.rank
        shape = None if rank is None else [FREE if size is None else int(size) for size in spec.shape]
        return ModelTensor(name, datatype, shape)

    @staticmethod
    def _numpy_type(dtype: Any) -> Any:
        import numpy

        return numpy.dtype(dtype.as_numpy_dtype)

    def run(self, arrays: Arrays, wanted: Sequence[str]) -> Arrays:
        """The wanted outputs. Raises what TensorFlow raises."""
        specs = self._specs()
        inputs = {name: self.tensorflow.constant(array, specs[name].dtype) for name, array in arrays.items()}
        outputs = self.signature(**inputs)
        return {name: _plain(outputs[name].numpy()) for name in wanted}


def _plain(array: Any) -> Any:
    """Text as str, and the numbers of bfloat16, which numpy has not, as float32."""
    import numpy

    array = numpy.asarray(array)
    if array.dtype.kind == "O":
        texts = [spec.decode("utf-8", "replace") if isinstance(spec, bytes) else spec for spec in array.ravel()]
        plain_texts: Any = numpy.empty(len(texts), object)
        plain_texts[:] = texts
        return plain_texts.reshape(array.shape)
    return array.astype("float32") if array.dtype.kind == "V" or array.dtype.name == "bfloat16" else array
