"""Helpers of handlers: labels of classes, and the exception with a status."""

import inspect
import itertools
import json
import os


class PredictionException(Exception):
    """Raised by a handler: the client gets this message and this status."""

    def __init__(self, message, error_code=500):
        super().__init__(message)
        self.message = message
        self.error_code = error_code

    def __str__(self):
        return "%s : %s" % (self.message, self.error_code)


def list_classes_from_module(module, parent_class=None):
    """The classes that a module defines itself."""
    kinds = [kind for _, kind in inspect.getmembers(module, inspect.isclass) if kind.__module__ == module.__name__]
    return kinds if parent_class is None else [kind for kind in kinds if issubclass(kind, parent_class)]


def load_label_mapping(mapping_file_path):
    """The labels of classes by their number, as texts; None where there is no file."""
    if not os.path.isfile(mapping_file_path):
        return None
    with open(mapping_file_path) as file:
        mapping = json.load(file)
    if not isinstance(mapping, dict):
        raise Exception('index->name JSON mapping should be in "class": "label" format.')
    names = mapping.get("object_type_names")
    if isinstance(names, list):
        return {str(number): name for number, name in enumerate(names)}
    labels = {key: value[-1] if isinstance(value, list) else value for key, value in mapping.items()}
    if not all(isinstance(label, str) for label in labels.values()):
        raise Exception("labels in index->name mapping must be either str or List[str]")
    return labels


def map_class_to_label(probs, mapping=None, lbl_classes=None):
    """For each row, its values by label; without a mapping, by the number of the class."""
    if not isinstance(probs, list):
        raise Exception("Convert classes to list before doing mapping")
    if mapping is not None and not isinstance(mapping, dict):
        raise Exception("Mapping must be a dict")
    if lbl_classes is None:
        lbl_classes = itertools.repeat(range(len(probs[0])), len(probs))
    return [
        {(str(kind) if mapping is None else mapping[str(kind)]): value for kind, value in zip(kinds, values)}
        for kinds, values in zip(lbl_classes, probs)
    ]


def get_yaml_config(yaml_file_path):
    """The values of a YAML file."""
    import yaml

    with open(yaml_file_path) as file:
        return yaml.safe_load(file)
