"""TorchScript files, by torch. They do not describe their inputs: `[[inputs]]` in panglot.toml does."""

from __future__ import annotations

from typing import Any, List

from panglot_worker.runtimes.base import ModelFile, ModelTensor
from panglot_worker.runtimes.torch_tensors import TorchModule


class TorchScript(TorchModule):
    """A scripted or traced module, called with the declared inputs in their order."""

    platform = "pytorch_torchscript"

    def __init__(self, file: ModelFile) -> None:
        super().__init__(file)
        self.inputs = [ModelTensor(spec.name, spec.datatype, spec.shape) for spec in file.inputs]
        try:
            self.module = self.torch.jit.load(file.path, map_location=self.device).eval()
        except (RuntimeError, ValueError) as error:
            said = " ".join(str(error).split())[:300]
            raise file.error("torch cannot load it as TorchScript: %s" % said,
                             "save it by torch.jit.script(model).save(...)") from None  # fmt: skip
        self.look_at_outputs()
        if not self.outputs:
            raise file.error("it cannot run with inputs as [[inputs]] declares them: %s" % self._failure(),
                             "correct their shapes and datatypes in panglot.toml")  # fmt: skip

    def called(self, tensors: List[Any]) -> Any:
        return self.module(*tensors)

    def _failure(self) -> str:
        """The error of torch for inputs as they are declared."""
        from panglot_worker.runtimes import probing

        if not probing.can_be_made(self.inputs):
            return "their shapes are not known"
        try:
            self.run(probing.Trial().arrays(self.inputs, 1), ())
        except Exception as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            return lines[-1][:300] if lines else type(error).__name__
        return "it gives nothing"
