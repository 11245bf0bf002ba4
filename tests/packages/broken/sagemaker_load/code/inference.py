import os


def model_fn(model_dir):
    with open(os.path.join(model_dir, "model.joblib"), "rb") as file:
        return file.read()


def predict_fn(data, model):
    return data
