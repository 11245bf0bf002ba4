"""What the server tells the SDK, and what the script tells it."""


class Properties:
    """Options by name. All are texts; options without a meaning here are stored and have no effect."""

    def __init__(self):
        self._values = {}

    def put(self, name, value):
        self._values[str(name)] = str(value)
        return self

    set = put

    def get(self, name, default=None):
        return self._values.get(str(name), default)

    def __contains__(self, name):
        return name in self._values


# State of this module: scripts reach it by functions, and have no object of the server.
properties = Properties()
model_path = ""
