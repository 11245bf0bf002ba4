"""The configuration of an MXNet script: its files, its batch, its crop."""

import contextlib
import csv
import json
import os
import tarfile

from evals.utils import parse_crop_size, parse_params_file


class NetConfig:
    """Filled by `parse` from what `create_net` gets."""

    def __init__(self):
        self.use_device = "CPU"
        self.batch_size = 1
        self.image_width = self.image_height = 224
        self.file_model = self.file_symbol = self.file_labels = ""
        self.model_prefix = ""
        self.model_epoch = 0
        self.custom_params = {}
        self.model_params = {}

    def parse(self, configs):
        """Take what is known of the files, the batch and the crop from the configuration; returns itself."""
        self.use_device = configs.get("use_device") or self.use_device
        self.batch_size = configs.get("batch_size") or 1
        self.custom_params = configs.get("custom_params") or configs.get("custom_values") or {}
        self.model_params = configs.get("model_params") or {}
        self.image_width, self.image_height = parse_crop_size(
            configs, self.model_params, self.custom_params, self.image_width, self.image_height
        )
        for path in sorted((configs.get("model_files") or {}).values()):
            self._take(path)
        for path in sorted((configs.get("custom_files") or {}).values()):
            if path.endswith(".csv"):
                self.file_labels = path
        return self

    def _take(self, path):
        name = os.path.basename(path)
        if name.endswith(".params"):
            self.file_model = path
            self.model_prefix, self.model_epoch = parse_params_file(path)
            _name_epoch(path, "%s-%04d.params" % (self.model_prefix, self.model_epoch))
        elif name.endswith("symbol.json"):
            self.file_symbol = path
        elif name.endswith(".csv"):
            self.file_labels = path


def _name_epoch(path, usual):
    """Let MXNet find a file without an epoch in its name, since it looks for prefix and epoch alone."""
    if path != usual:
        with contextlib.suppress(OSError):
            os.symlink(os.path.basename(path), usual)


def parse_infer_config(tar):
    """The JSON of the first member of an archive whose name ends in `config.json`; empty without one."""
    with tarfile.open(tar) as archive:
        for member in archive:
            if member.isfile() and member.name.endswith("config.json"):
                return json.loads(archive.extractfile(member).read())
    return {}


def load_labels(file):
    """The rows of a CSV file of labels."""
    with open(file, newline="", encoding="utf-8-sig") as rows:
        return list(csv.reader(rows))
