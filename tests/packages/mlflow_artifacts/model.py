"""A model with an artifact, with code of its own, and with a configuration."""

import json

import mlflow
from words import spelling


class Words(mlflow.pyfunc.PythonModel):
    def load_context(self, context):
        with open(context.artifacts["vocabulary"]) as file:
            self.known = json.load(file)
        self.config = dict(context.model_config)

    def predict(self, context, model_input, params=None):
        column = model_input["text"] if "text" in model_input else model_input.iloc[:, 0]
        texts = [spelling.spelled(text, self.known, self.config["unknown"]) for text in column]
        return [text.upper() for text in texts] if self.config.get("shout") else texts


mlflow.models.set_model(Words())
