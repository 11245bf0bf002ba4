"""Tells what it got, and with how many others."""

from panglot import File


def outline(value, levels=3):
    """Enough of a value to see that it arrived rightly, whatever its size."""
    if isinstance(value, File):
        return {"name": value.name, "type": value.type, "size": len(value.bytes)}
    if isinstance(value, (dict, list)) and not levels:
        return "..."
    if isinstance(value, dict):
        return {"keys": len(value), "first": {key: outline(value[key], levels - 1) for key in list(value)[:3]}}
    if isinstance(value, list):
        return {"length": len(value), "first": [outline(item, levels - 1) for item in value[:3]]}
    if isinstance(value, str) and len(value) > 50:
        return {"characters": len(value)}
    return value


class Model:
    def predict_batch(self, items):
        return [{"got": outline(item), "batch": len(items)} for item in items]
