import os


def predict(request:
    return 1
