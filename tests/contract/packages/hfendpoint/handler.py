"""One order in a call."""

import acts


class EndpointHandler:
    def __init__(self, path=""):
        acts.load()

    def __call__(self, data):
        return acts.act(data["inputs"])
