import json

from azureml.core.model import Model


def init():
    global model, model_path
    model_path = Model.get_model_path(model_name="weights")
    with open(model_path) as file:
        model = json.load(file)


def run(raw_data):
    try:
        data = json.loads(raw_data)["data"]
        return {"result": [value * model["factor"] for value in data], "model": model_path[-24:]}
    except Exception as e:
        return str(e)
