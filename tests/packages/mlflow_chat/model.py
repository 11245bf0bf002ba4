"""A chat: messages at the top of the body, and an answer without `predictions`."""

import mlflow


class Chat(mlflow.pyfunc.PythonModel):
    def predict(self, context, model_input, params=None):
        messages = model_input["messages"]
        messages = messages[0] if hasattr(messages, "iloc") else messages
        last = messages[-1]["content"]
        return {"content": last[::-1], "temperature": params["temperature"]}


mlflow.models.set_model(Chat())
