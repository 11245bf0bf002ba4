"""From bodies to arrays and back."""

from panglot_worker.dialects.sagemaker.bodies import array_to_json, array_to_npy, json_to_numpy, npy_to_numpy
from panglot_worker.dialects.sagemaker.older_bodies import array_to_csv, csv_to_numpy, decode, encode

__all__ = [
    "array_to_csv", "array_to_json", "array_to_npy", "csv_to_numpy", "decode", "encode", "json_to_numpy",
    "npy_to_numpy",
]  # fmt: skip
