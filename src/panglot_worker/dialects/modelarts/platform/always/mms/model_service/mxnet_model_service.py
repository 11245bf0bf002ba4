"""MXNet: a symbol and its parameters, bound by the signature of the manifest."""

from __future__ import annotations

import glob
import json
import os
from typing import Any, Dict, List, Optional

from mms.model_service.model_service import SingleNodeService
from mms.utils.mxnet import ndarray


class MXNetBaseService(SingleNodeService):
    """`_preprocess` gets a list with one element per input of the signature."""

    def __init__(self, model_name: str, model_dir: str, manifest: Dict[str, Any], gpu: Optional[int] = None) -> None:
        super().__init__(model_name, model_dir)
        import mxnet

        self.model_name = model_name
        self.model_path = self.model_dir = model_dir
        self.ctx = mxnet.gpu(gpu) if gpu is not None else mxnet.cpu()
        self._signature = signature_of(manifest, model_dir)
        self.labels = labels_of(model_dir)
        shapes = [(entry["data_name"], tuple(max(1, size) for size in entry["data_shape"])) for entry in self._inputs()]
        symbol, arguments, auxiliary = self._load_checkpoint(mxnet)
        self.mx_model = mxnet.mod.Module(
            symbol, data_names=[name for name, _ in shapes], label_names=None, context=self.ctx
        )
        self.mx_model.bind(for_training=False, data_shapes=shapes)
        self.mx_model.set_params(arguments, auxiliary, allow_missing=True, allow_extra=True)

    def signature(self) -> Any:
        return self._signature

    def _inputs(self) -> List[Dict[str, Any]]:
        return list(self._signature.get("inputs", ()))

    def _load_checkpoint(self, mxnet: Any) -> Any:
        """The only symbol file of the folder, with its parameters."""
        symbols = sorted(glob.glob(os.path.join(self.model_dir, "*-symbol.json")))
        if not symbols:
            raise FileNotFoundError("there is no *-symbol.json in %s" % self.model_dir)
        prefix = symbols[0][: -len("-symbol.json")]
        parameters = sorted(glob.glob(glob.escape(prefix) + "-*.params"))
        if not parameters:
            raise FileNotFoundError("there is no %s-0000.params" % prefix)
        epoch = int(parameters[0][len(prefix) + 1 : -len(".params")])
        return mxnet.model.load_checkpoint(prefix, epoch)

    def _preprocess(self, data: Any) -> Any:
        import mxnet

        return [mxnet.nd.array(value, ctx=self.ctx) for value in data]

    def _inference(self, data: Any) -> Any:
        import mxnet

        for value, entry in zip(data, self._inputs()):
            wanted = entry["data_shape"]
            if len(value.shape) != len(wanted):
                raise ValueError("%s has the shape %s, not %s" % (entry["data_name"], value.shape, tuple(wanted)))
        self.mx_model.forward(mxnet.io.DataBatch(data))
        return self.mx_model.get_outputs()

    def _postprocess(self, data: Any) -> Any:
        if self.labels:
            return [ndarray.top_probability(value, self.labels) for value in data]
        return [str(value.asnumpy().tolist()) for value in data]


def signature_of(manifest: Dict[str, Any], model_dir: str) -> Dict[str, Any]:
    """The signature of a manifest: an object, or the name of a file that holds it."""
    given = manifest.get("Model", {}).get("Signature", {})
    if isinstance(given, dict):
        return given
    with open(os.path.join(model_dir, given), encoding="utf-8") as file:
        signature = json.load(file)
    return dict(signature)


def labels_of(model_dir: str) -> List[str]:
    path = os.path.join(model_dir, "synset.txt")
    if not os.path.isfile(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [line.strip() for line in file if line.strip()]
