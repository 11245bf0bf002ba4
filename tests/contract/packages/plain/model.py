"""Several orders in a call."""

import acts


class Model:
    def load(self):
        acts.load()

    def predict_batch(self, orders):
        return acts.act_all(orders)
