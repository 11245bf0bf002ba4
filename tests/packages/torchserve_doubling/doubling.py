"""Doubles numbers, inside of an envelope."""


def handle(data, context):
    return None if data is None else [value * 2 for value in data]
