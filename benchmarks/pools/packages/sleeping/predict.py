import time


def preprocess(request):
    time.sleep(0.020)
    return request


def predict(request):
    time.sleep(0.005)
    return request
