"""The envelope `kservev2`: tensors of the Open Inference Protocol, as JSON."""

import json

import numpy as np

from ts.torch_handler.request_envelope.base import BaseEnvelope

KINDS = {"b": "BOOL", "f": "FP", "i": "INT", "u": "UINT"}


class KServev2Envelope(BaseEnvelope):
    """A handler gets the inputs of the first request; each of its outputs has the name of an input."""

    def parse_input(self, data):
        first = self.bodies(data)[0]
        table = json.loads(first.decode()) if isinstance(first, (bytes, bytearray)) else first
        inputs = [self._read(entry) for entry in table["inputs"]]
        self.context.input_names = [entry["name"] for entry in inputs]
        self.context.input_request_id = (table.get("id") or "").strip()
        return inputs

    @staticmethod
    def _read(entry):
        if entry["datatype"] == "BYTES":
            return {**entry, "data": entry["data"][0]}
        return {**entry, "data": np.array(entry["data"]).reshape(tuple(entry["shape"])).tolist()}

    def format_output(self, data):
        model = self.context.manifest["model"]
        outputs = [self._written(value, name) for value, name in zip(data, self.context.input_names)]
        return [
            {
                "id": self.context.input_request_id or self.context.get_request_id(0),
                "model_name": model.get("modelName"),
                "model_version": model.get("modelVersion"),
                "outputs": outputs,
            }
        ]

    @staticmethod
    def _written(value, name):
        flat = np.array(value).flatten()
        size = "" if flat.dtype.kind == "b" else str(flat.dtype.itemsize * 8)
        kind = KINDS[flat.dtype.kind] + size if flat.dtype.kind in KINDS else "BYTES"
        return {"name": name, "datatype": kind, "data": flat.tolist(), "shape": list(flat.shape)}
