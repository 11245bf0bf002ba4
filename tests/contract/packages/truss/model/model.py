"""One order in a call, as JSON."""

import acts


class Model:
    def load(self):
        acts.load()

    def predict(self, model_input):
        return acts.act(model_input)
