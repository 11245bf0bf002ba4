"""A plain script: what it was said, and how long that is."""


def predict(request):
    return {"said": request["said"], "length": len(request["said"])}
