"""The envelope `kserve`: the `instances` of the first request."""

import json

from ts.torch_handler.request_envelope.base import BaseEnvelope


class KServeEnvelope(BaseEnvelope):
    """Answers with `{"predictions": [...]}`, or with `explanations`."""

    def parse_input(self, data):
        first = self.bodies(data)[0]
        table = json.loads(first.decode()) if isinstance(first, (bytes, bytearray)) else first
        return table.get("instances")

    def format_output(self, data):
        return [{"explanations" if self._is_explain() else "predictions": data}]
