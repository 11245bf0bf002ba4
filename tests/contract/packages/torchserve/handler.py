"""Orders, several in a call."""

import acts


def handle(data, context):
    if data is None:
        acts.load()
        return None
    return acts.act_all([row["body"] for row in data])
