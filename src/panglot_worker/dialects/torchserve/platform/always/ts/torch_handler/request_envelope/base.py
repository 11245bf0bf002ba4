"""What envelopes have in common."""

from abc import ABC, abstractmethod


class BaseEnvelope(ABC):
    """Changes the requests before a handler gets them, and its answers after that."""

    def __init__(self, handle_fn):
        self._handle_fn = handle_fn
        self.context = None

    def handle(self, data, context):
        self.context = context
        results = self._handle_fn(self.parse_input(data) if data else data, context)
        return self.format_output(results) if results else results

    @abstractmethod
    def parse_input(self, data):
        """What the handler gets."""

    @abstractmethod
    def format_output(self, data):
        """What clients get."""

    @staticmethod
    def bodies(data):
        return [row.get("data") or row.get("body") for row in data]

    def _is_explain(self):
        return bool(self.context and self.context.get_request_header(0, "explain") == "True")
