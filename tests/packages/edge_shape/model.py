"""Tells what it got, in a few words."""


def predict(request):
    return {"type": type(request).__name__}
