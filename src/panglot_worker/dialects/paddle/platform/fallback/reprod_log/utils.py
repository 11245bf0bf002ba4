"""Files, loggers and conversions."""

import logging
import os
import pickle
import sys

import numpy as np

ALLOWED = {
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy.core.multiarray", "scalar"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "scalar"),
    ("numpy.core.numeric", "_frombuffer"),
    ("numpy._core.numeric", "_frombuffer"),
    ("_codecs", "encode"),
    ("collections", "OrderedDict"),
}
"""All that a pickle of arrays needs. Anything else in one is refused."""
RENAMED = {"numpy.core": "numpy._core", "numpy._core": "numpy.core"}


class Arrays(pickle.Unpickler):
    def find_class(self, module, name):
        """Allow the classes that arrays are made of; refuse all others before anything of them runs."""
        if (module, name) not in ALLOWED:
            raise ValueError("the file holds a %s.%s, which is no array" % (module, name))
        try:
            return super().find_class(module, name)
        except ImportError:
            # Numpy 2 moved its core: a file of either side is read on the other.
            start = next(start for start in RENAMED if module.startswith(start + "."))
            return super().find_class(module.replace(start, RENAMED[start], 1), name)


def load(path):
    """The dict in a .npy file."""
    if not os.path.isfile(path):
        raise FileNotFoundError("%s does not exist%s" % (path, _hint(path)))
    with open(path, "rb") as file:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file)
        if shape != () or not dtype.hasobject:
            raise ValueError("%s holds an array, not a log of named arrays" % path)
        loaded = Arrays(file).load()
    loaded = loaded.tolist() if isinstance(loaded, np.ndarray) else loaded
    if not isinstance(loaded, dict):
        raise ValueError("%s holds no log of named arrays" % path)
    return loaded


def _hint(path):
    return "; there is %s.npy" % path if os.path.isfile(path + ".npy") else ""


def init_logger(path=None, name="root"):
    """A logger of its own to the screen and, if given, to a new file. `close` it."""
    logger = logging.Logger(name, logging.INFO)
    handlers = [logging.StreamHandler(sys.stdout)]
    if path:
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        handlers.append(logging.FileHandler(path, mode="w"))
    for handler in handlers:
        handler.setFormatter(
            logging.Formatter("[%(asctime)s] %(name)s %(levelname)s: %(message)s", "%Y/%m/%d %H:%M:%S")
        )
        logger.addHandler(handler)
    return logger


def close(logger):
    for handler in list(logger.handlers):
        if isinstance(handler, logging.FileHandler):
            handler.close()
        logger.removeHandler(handler)


def to_numpy(value):
    """An array of a tensor, a number or an array."""
    for step in ("detach", "cpu", "numpy"):
        value = getattr(value, step)() if hasattr(value, step) else value
    return np.asarray(value)


def torch2np(data):
    return {key: to_numpy(value) for key, value in data.items()}


paddle2np = torch2np


def np2torch(data):
    import torch

    return {key: torch.as_tensor(value) for key, value in data.items()}


def np2paddle(data):
    import paddle

    return {key: paddle.to_tensor(value) for key, value in data.items()}
