"""One order in a call, as the text of its body."""

import json

import acts

# azureml: no decorators, so run() gets text.


def init():
    acts.load()


def run(raw_data):
    return acts.act(json.loads(raw_data))
