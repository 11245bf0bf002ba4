"""Ascend 310 (.om files): the names scripts import. Their models run on that chip and nowhere else."""

from __future__ import annotations

from typing import Any

from model_service.model_service import SingleNodeService


class HiaiBaseService(SingleNodeService):
    """`self.model.proc(tensor_list)` runs the .om file on the chip."""

    def __init__(self, model_name: str, model_path: str) -> None:
        super().__init__(model_name, model_path)
        self.model_name = model_name
        self.model_path = model_path
        self.model: Any = None
        raise RuntimeError(
            "HiaiBaseService runs .om files on an Ascend 310 chip; there is none here, and no other device can run them"
        )

    def _inference(self, data: Any) -> Any:
        return {key: self.model.proc(value) for key, value in data.items()}
