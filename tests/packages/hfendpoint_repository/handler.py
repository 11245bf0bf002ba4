import json


class EndpointHandler:
    def __init__(self, path=""):
        with open("/repository/labels.json") as file:
            self.labels = json.load(file)

    def __call__(self, data):
        return self.labels[data["inputs"]]
