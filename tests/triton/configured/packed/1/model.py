"""Imports what only its own environment has."""

import sys

import numpy as np
import only_there
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        said = np.array([only_there.WORD, sys.executable], object)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("SAID", said)]) for _ in requests]
