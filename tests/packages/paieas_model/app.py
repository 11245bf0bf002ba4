import json

import allspark


class Labels(allspark.BaseProcessor):
    def initialize(self):
        with open("/eas/workspace/model/labels.json") as file:
            self.labels = json.load(file)

    def process(self, data):
        return self.labels[int(data)], 200


if __name__ == "__main__":
    Labels().run()
