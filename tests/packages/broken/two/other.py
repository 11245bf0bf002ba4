def predict(x):
    return 2
