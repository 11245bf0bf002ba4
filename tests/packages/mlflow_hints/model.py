"""A model whose signature is that of its type hints: it gets the list as it was sent."""

import mlflow


class Upper(mlflow.pyfunc.PythonModel):
    def predict(self, model_input: list[str]) -> list[str]:
        assert type(model_input) is list
        return [text.upper() for text in model_input]


mlflow.models.set_model(Upper())
