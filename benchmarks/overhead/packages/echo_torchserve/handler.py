"""Answers with what it gets."""


class Echo:
    def initialize(self, context):
        """There is nothing to load."""

    def handle(self, data, context):
        return [row.get("body") for row in data]
