"""Streams values of 100 kB without an end, as fast as they are taken."""


def predict(request):
    while True:
        yield "x" * 100_000
