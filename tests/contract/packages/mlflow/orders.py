"""One order in a call, as the only element of an array of texts."""

import json

import acts
import mlflow


class Orders(mlflow.pyfunc.PythonModel):
    def load_context(self, context):
        acts.load()

    def predict(self, context, model_input, params=None):
        return acts.act(json.loads(model_input[0]))


mlflow.models.set_model(Orders())
