"""One order in a call."""

import json

import acts
import allspark


class Orders(allspark.BaseProcessor):
    def initialize(self):
        acts.load()

    def process(self, data):
        return json.dumps(acts.act(json.loads(data))), 200


if __name__ == "__main__":
    Orders().run()
