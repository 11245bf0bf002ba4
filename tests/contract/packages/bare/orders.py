"""What the pickle orders.pkl makes: an estimator whose rows are orders."""

import json
import time

import acts


class Orders:
    def __init__(self):
        acts.load()

    def predict(self, texts):
        # A call costs more than a row, so that it is worth while to share one.
        time.sleep(0.002)
        orders = [json.loads(text) for text in texts]
        # The texts that are made up to prove that rows may share a run are numbers.
        orders = [order if isinstance(order, dict) else {"id": order} for order in orders]
        return [[answer["id"], answer["twice"]] for answer in acts.act_all(orders)]
