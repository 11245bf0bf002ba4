"""Sleeps 5 ms for each batch, as a model on a device would keep its process waiting."""

import time


class Nap:
    def initialize(self, context):
        """There is nothing to load."""

    def handle(self, data, context):
        time.sleep(0.005)
        return [row.get("body") for row in data]
