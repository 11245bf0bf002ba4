import json
import os
import sys

sys.path.append(".")
from allspark import BaseProcessor as Base
from helpers import clean


class Heart(Base):
    def __init__(self, *args, **kwargs):
        self.name = "heart"
        super(Heart, self).__init__(*args, **kwargs)

    def initialize(self):
        with open(os.path.join(self.get_model_path(), "model.json")) as f:
            self.model = json.load(f)

    def process(self, data):
        numbers = clean(data)
        return json.dumps({"name": self.name, "scores": [self.model["slope"] * n for n in numbers]}), 200


runner = Heart(worker_threads=1, worker_processes=2, endpoint="0.0.0.0:8080")
runner.run()
