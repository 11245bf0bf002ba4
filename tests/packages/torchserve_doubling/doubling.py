"""Doubles numbers, inside of an envelope."""


def handle(data, context):
    return None if data is None else [double(value) for value in data]


def double(value):
    """Twice a number, a list of them, or the data of a tensor."""
    if isinstance(value, dict):
        value = value["data"]
    return [double(part) for part in value] if isinstance(value, list) else value * 2
