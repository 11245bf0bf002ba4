"""The envelope `body`: a handler gets the bodies alone."""

from ts.torch_handler.request_envelope.base import BaseEnvelope


class BodyEnvelope(BaseEnvelope):
    """Takes `data`, or `body`, of each request."""

    def parse_input(self, data):
        return self.bodies(data)

    def format_output(self, data):
        return data
