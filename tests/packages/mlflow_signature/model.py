"""Two columns and a parameter."""

import mlflow


class Scaled(mlflow.pyfunc.PythonModel):
    def predict(self, context, model_input, params=None):
        return (model_input["x"] + model_input["y"]).to_numpy() * 2 * params["t"]


mlflow.models.set_model(Scaled())
