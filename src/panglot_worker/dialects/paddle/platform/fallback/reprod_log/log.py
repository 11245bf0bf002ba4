"""`ReprodLogger`: arrays by name, saved as a .npy file."""

import os

import numpy as np


class ReprodLogger:
    def __init__(self):
        self._data = {}

    @property
    def data(self):
        return self._data

    def add(self, key, val):
        """Raises TypeError for what is no array."""
        if not isinstance(val, (np.ndarray, np.generic)):
            raise TypeError("the value of %r must be a numpy array, not %s" % (key, type(val).__name__))
        self._data[key] = np.asarray(val)

    def remove(self, key):
        if self._data.pop(key, None) is None:
            print("%s is not in the log" % key)

    def clear(self):
        self._data.clear()

    def save(self, path):
        """Numpy adds .npy to a name without it. Folders are made."""
        folder = os.path.dirname(os.path.abspath(path))
        os.makedirs(folder, exist_ok=True)
        np.save(path, self._data)
