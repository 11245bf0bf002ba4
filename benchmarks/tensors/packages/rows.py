"""Gives every row back."""


class Model:
    def predict_batch(self, items):
        return items
