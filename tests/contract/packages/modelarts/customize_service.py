"""One order in a call."""

import acts
from model_service.model_service import SingleNodeService


class Orders(SingleNodeService):
    def __init__(self, model_name, model_path):
        super().__init__(model_name, model_path)
        acts.load()

    def _inference(self, data):
        return acts.act(data)
