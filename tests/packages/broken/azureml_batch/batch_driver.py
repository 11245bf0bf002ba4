import os

import pandas as pd


def init():
    global model_path
    model_path = os.environ["AZUREML_MODEL_DIR"]


def run(mini_batch):
    return pd.DataFrame([os.path.basename(path) for path in mini_batch])
