import json


def clean(data):
    return json.loads(data.decode("utf-8"))["data"]
