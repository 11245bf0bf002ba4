"""A class with every hook; each leaves its mark."""

import os
import sys

import helper


class Model:
    def __init__(self):
        self.marks = ["init"]

    def load(self):
        self.marks.append("load")
        self.table = open("table.txt").read().strip()

    def preprocess(self, request):
        return {"value": request["value"], "marks": [*self.marks, "preprocess"]}

    def predict(self, item):
        return {**item, "value": helper.double(item["value"]), "marks": [*item["marks"], "predict"]}

    def postprocess(self, output):
        return {
            **output,
            "marks": [*output["marks"], "postprocess"],
            "table": self.table,
            "cwd": os.path.basename(os.getcwd()),
            "argv": os.path.basename(sys.argv[0]),
            "first_path": os.path.basename(sys.path[0]),
        }

    def example(self):
        return {"value": 2}

    def close(self):
        print("closed well")
