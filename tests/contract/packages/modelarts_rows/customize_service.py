"""Orders as rows of a Scikit_Learn service: number, act, gate."""

import acts
from model_service.python_model_service import XgSklServingBaseService


class Orders(XgSklServingBaseService):
    def __init__(self, model_path):
        super().__init__(model_path)
        acts.load()

    def _inference(self, data):
        return [acts.act({"id": id, "op": op, "gate": gate}) for id, op, gate in data]
