def model_fn(model_dir):
    return 1


def predict_fn(data, model):
    return data


def transform_fn(model, data, content_type, accept):
    return data
