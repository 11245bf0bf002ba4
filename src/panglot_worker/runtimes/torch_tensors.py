"""The common part of both formats of PyTorch: arrays in, a module's call, arrays out by name."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Sequence

from panglot_worker.runtimes import probing
from panglot_worker.runtimes.base import DATATYPES, FREE, Arrays, ModelFile, ModelRuntime, ModelTensor, datatype_of


class TorchModule(ModelRuntime):
    """A module that is called with tensors."""

    def __init__(self, file: ModelFile) -> None:
        super().__init__(file)
        self.torch = file.library("torch")
        self.torch.set_num_threads(file.threads)
        if file.wants_cuda and not self.torch.cuda.is_available():
            raise file.no_cuda("torch")
        # Only one device is visible to this worker, whatever its number.
        self.device = "cuda:0" if file.wants_cuda else "cpu"
        self.outputs = []

    def called(self, tensors: List[Any]) -> Any:
        """The module's result for its inputs, given in their order."""
        raise NotImplementedError

    def run(self, arrays: Arrays, wanted: Sequence[str]) -> Arrays:
        """The wanted outputs. Raises what torch raises."""
        with self.torch.inference_mode():
            result = self.called([self._tensor(spec, arrays[spec.name]) for spec in self.inputs])
            outputs = named(result, self.file.outputs)
            return {name: self._array(outputs[name]) for name in wanted or outputs}

    def _tensor(self, spec: ModelTensor, array: Any) -> Any:
        # A tensor shares the memory of its array: torch wants memory that may be written, without negative strides.
        if not array.flags.writeable or not array.flags.c_contiguous:
            array = array.copy()
        tensor = self.torch.from_numpy(array).to(self.device)
        return tensor.bfloat16() if spec.datatype == "BF16" else tensor

    def _array(self, tensor: Any) -> Any:
        tensor = tensor.detach().cpu()
        return (tensor.float() if tensor.dtype is self.torch.bfloat16 else tensor).numpy()

    def look_at_outputs(self) -> None:
        """Run made-up inputs once: only a result shows the outputs. They stay empty where no inputs make it run."""
        trial = probing.first_that_runs(self)
        if trial is None:
            return
        self.outputs = [
            ModelTensor(name, self._datatype(name, trial), _shape(self.inputs, array.shape))
            for name, array in self.run(trial.arrays(self.inputs, 1), ()).items()
        ]

    def _datatype(self, name: str, trial: probing.Trial) -> str:
        arrays = trial.arrays(self.inputs, 1)
        with self.torch.inference_mode():
            result = self.called([self._tensor(spec, arrays[spec.name]) for spec in self.inputs])
            result = named(result, self.file.outputs)[name]
        return "BF16" if result.dtype is self.torch.bfloat16 else datatype_of(self._array(result).dtype)


def named(result: Any, names: Mapping[int, str]) -> Dict[str, Any]:
    """A module's result by name: the keys of a dict, names given by index, or output, or output_0 and so on."""
    if isinstance(result, dict):
        return {str(name): value for name, value in result.items()}
    if isinstance(result, (list, tuple)):
        own = getattr(result, "_fields", None) or ["output_%d" % at for at in range(len(result))]
        return {names.get(at, own[at]): value for at, value in enumerate(result)}
    return {names.get(0, "output"): result}


def torch_datatype(dtype: Any) -> str:
    """The datatype of a type of torch; empty where there is none."""
    name = str(dtype).partition(".")[2]
    return "BF16" if name == "bfloat16" else DATATYPES.get(name, "")


def _shape(inputs: List[ModelTensor], shape: Sequence[int]) -> List[int]:
    """The shape of an output. Its first dimension is free where it is in all inputs."""
    free = bool(shape) and all(spec.shape and spec.shape[0] == FREE for spec in inputs)
    return [FREE, *shape[1:]] if free else list(shape)
