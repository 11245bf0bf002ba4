"""Needs a package of its own, which requirements.txt of the archive names."""

import rates_of_exchange


def predict(data, context):
    if data is None:
        return None
    return [{"rate": rates_of_exchange.rate((row.get("data") or row.get("body"))["to"])} for row in data]
