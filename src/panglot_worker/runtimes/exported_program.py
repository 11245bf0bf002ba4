"""Files of torch.export (.pt2), by torch."""

from __future__ import annotations

import importlib
from typing import Any, List

from panglot_worker.runtimes.base import FREE, ModelFile, ModelTensor
from panglot_worker.runtimes.torch_tensors import TorchModule, torch_datatype


class ExportedProgram(TorchModule):
    """An exported program. Its inputs are in the file; its outputs are seen by a run."""

    platform = "pytorch_export"

    def __init__(self, file: ModelFile) -> None:
        super().__init__(file)
        try:
            program = self.torch.export.load(file.path)
        except Exception as error:
            said = " ".join(str(error).split())[:300]
            raise file.error("torch cannot load it as an exported program: %s" % said,
                             "save it by torch.export.save(torch.export.export(...), ...)") from None  # fmt: skip
        self.module = self._moved(program).module().to(self.device)
        self.positional = len(program.call_spec.in_spec.child(0).children())
        self.inputs = self._described(program)
        self.look_at_outputs()
        if not self.outputs:
            raise file.error("it does not run with inputs of the shapes it was exported for")

    def _moved(self, program: Any) -> Any:
        """The program for the device it runs on: each node of it names the device of the export."""
        try:
            passes = importlib.import_module("torch.export.passes")
        except ModuleNotFoundError:
            return program
        return passes.move_to_device_pass(program, self.device) if self.file.wants_cuda else program

    def _described(self, program: Any) -> List[ModelTensor]:
        values = {node.name: node.meta["val"] for node in program.graph.nodes if node.op == "placeholder"}
        inputs = []
        for name in program.graph_signature.user_inputs:
            value: Any = values.get(name)
            datatype = torch_datatype(getattr(value, "dtype", None))
            if not datatype:
                raise self.file.error("its input %s is no tensor of numbers" % name, "export it with tensors alone")
            shape = [size if isinstance(size, int) else FREE for size in value.shape]
            inputs.append(ModelTensor(name, datatype, shape))
        return inputs

    def called(self, tensors: List[Any]) -> Any:
        """Positional arguments first, then those by name, as the program was exported."""
        by_name = {
            spec.name: tensor for spec, tensor in zip(self.inputs[self.positional :], tensors[self.positional :])
        }
        return self.module(*tensors[: self.positional], **by_name)
