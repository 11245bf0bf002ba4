"""Columns of every type, told as the model gets them."""

import mlflow


class Types(mlflow.pyfunc.PythonModel):
    def predict(self, context, model_input, params=None):
        rows = model_input.to_dict("records")
        return [{name: [type(value).__name__, repr(value)] for name, value in row.items()} for row in rows]


mlflow.models.set_model(Types())
