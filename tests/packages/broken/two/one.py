def predict(x):
    return 1
