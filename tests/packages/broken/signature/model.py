def load():
    pass


def predict(a, b):
    return 1
