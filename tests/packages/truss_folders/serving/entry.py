import json
import os

import labelling
import shared_words


class Classifier:
    def __init__(self, data_dir, config, **kwargs):
        self._data_dir = data_dir
        self._config = config
        self._labels = None

    def load(self):
        self._labels = json.loads((self._data_dir / "labels.json").read_text())

    def predict(self, model_input):
        return {
            "label": labelling.choose(self._labels, model_input["text"]),
            "word": shared_words.WORD,
            "concurrency": self._config["runtime"]["predict_concurrency"],
            "timeout": self._config["runtime"]["streaming_read_timeout"],
            "token": os.environ.get("HF_TOKEN"),
            "process": os.getpid(),
        }
