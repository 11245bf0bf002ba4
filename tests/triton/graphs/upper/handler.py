"""A handler of a Hugging Face endpoint."""


class EndpointHandler:
    def __init__(self, path=""):
        self.path = path

    def __call__(self, data):
        inputs = data["inputs"]
        if inputs == "refuse":
            raise ValueError("no such text")
        return {"said": inputs.upper() if isinstance(inputs, str) else [2 * number for number in inputs]}
