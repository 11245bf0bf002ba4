"""A question is an order."""

import acme
import acts

acts.load()


@acme.answers
def answer(order):
    return acts.act(order)
