import os
from pathlib import Path

from helpers.words import shout

# Read when the script is imported, so the variable must be there by then.
WEIGHT = int((Path(os.environ["AZUREML_MODEL_DIR"]) / "weights.txt").read_text())


def init():
    print("loading from", os.environ["AZUREML_MODEL_DIR"])


def run(data: str):
    return shout(f"{os.environ['GREETING']} {data} {WEIGHT} {__name__}")
