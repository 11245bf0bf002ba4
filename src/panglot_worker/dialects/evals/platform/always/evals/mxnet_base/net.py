"""The configuration of an MXNet script: its files, its batch, its crop, and what is subtracted from its pictures."""

import contextlib
import csv
import json
import os

from evals.utils import parse_crop_size, parse_params_file

MEANS = ("value_mean", "mean_value", "mean_values", "mean", "rgb_mean")
DEVIATIONS = ("value_std", "std_value", "std_values", "std", "rgb_std")
"""What numbers are called that are subtracted from a picture's channels, and that they are divided by."""


class NetConfig:
    """Filled by `parse` from what `create_net` gets. A file or value that is not there is None."""

    def __init__(self):
        self.use_device = "CPU"
        self.batch_size = 1
        self.image_width = self.image_height = 224
        self.file_model = self.file_symbol = self.file_synset = self.file_mean = self.file_taglist = None
        self.value_mean = self.value_std = None
        self.model_prefix = ""
        self.model_epoch = 0
        self.custom_files = {}
        self.custom_values = {}
        self.model_params = {}

    @property
    def file_labels(self):
        """The file of labels, by its other name."""
        return self.file_synset

    @property
    def custom_params(self):
        """The custom values, by the name they have in `configs`."""
        return self.custom_values

    def parse(self, configs):
        """Take what is known of the files, the batch, the crop and the values from the configuration; returns itself.

        Custom files and values win over those of the model.
        """
        self.use_device = configs.get("use_device") or self.use_device
        self.batch_size = configs.get("batch_size") or 1
        self.custom_files = configs.get("custom_files") or {}
        self.custom_values = configs.get("custom_params") or configs.get("custom_values") or {}
        self.model_params = configs.get("model_params") or {}
        self.image_width, self.image_height = parse_crop_size(
            configs, self.model_params, self.custom_values, self.image_width, self.image_height
        )
        own = configs.get("model_files") or configs.get("tar_files") or {}
        for files in (own, self.custom_files):
            for _, path in sorted(files.items()):
                self._take(path)
        self.value_mean, self.value_std = parse_infer_config(own)
        for values in (self.model_params, self.custom_values):
            self.value_mean = _numbers(values, MEANS) or self.value_mean
            self.value_std = _numbers(values, DEVIATIONS) or self.value_std
        return self

    def _take(self, path):
        name = os.path.basename(path).lower()
        if "taglist" in name:
            self.file_taglist = path
        elif "mean" in name and not name.endswith(".json"):
            self.file_mean = path
        elif name.endswith(".params"):
            self.file_model = path
            self.model_prefix, self.model_epoch = parse_params_file(path)
            _name_epoch(path, "%s-%04d.params" % (self.model_prefix, self.model_epoch))
        elif name.endswith("symbol.json"):
            self.file_symbol = path
        elif name.endswith(".csv") or "synset" in name:
            self.file_synset = path


def _name_epoch(path, usual):
    """Let MXNet find a file without an epoch in its name, since it looks for prefix and epoch alone."""
    if path != usual:
        with contextlib.suppress(OSError):
            os.symlink(os.path.basename(path), usual)


def parse_infer_config(tar):
    """The mean values and the deviations that the model was trained with, each None where nothing says them.

    `tar` has the model's files, paths by name; a JSON file called infer_config, infer or config has the values.
    """
    for name, path in sorted(tar.items()):
        if os.path.basename(name).lower() in ("infer_config.json", "infer.json", "config.json") and os.path.isfile(
            path
        ):
            with open(path, encoding="utf-8-sig") as file:
                values = json.load(file)
            if isinstance(values, dict):
                return _numbers(values, MEANS), _numbers(values, DEVIATIONS)
    return None, None


def _numbers(values, names):
    """The first of these values that is there, as a list of floats; they may stand in one text, with commas."""
    for name in names:
        value = values.get(name)
        if value is not None:
            parts = value.split(",") if isinstance(value, str) else value
            return [float(part) for part in (parts if isinstance(parts, (list, tuple)) else [parts])]
    return None


def load_labels(file):
    """The rows of a CSV file of labels."""
    with open(file, newline="", encoding="utf-8-sig") as rows:
        return list(csv.reader(rows))
