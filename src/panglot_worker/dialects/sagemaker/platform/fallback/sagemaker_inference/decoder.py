"""From bodies to arrays. Arrays of objects, which are pickles, are refused."""

from panglot_worker.dialects.sagemaker.bodies import READERS, decode
from panglot_worker.dialects.sagemaker.bodies import csv_to_numpy as _csv_to_numpy
from panglot_worker.dialects.sagemaker.bodies import json_to_numpy as _json_to_numpy
from panglot_worker.dialects.sagemaker.bodies import npy_to_numpy as _npy_to_numpy
from panglot_worker.dialects.sagemaker.bodies import npz_to_sparse as _npz_to_sparse

_decoder_map = READERS

__all__ = ["_csv_to_numpy", "_decoder_map", "_json_to_numpy", "_npy_to_numpy", "_npz_to_sparse", "decode"]
