"""From arrays to bodies."""

from panglot_worker.dialects.sagemaker.bodies import WRITERS, encode
from panglot_worker.dialects.sagemaker.bodies import array_to_csv as _array_to_csv
from panglot_worker.dialects.sagemaker.bodies import array_to_json as _array_to_json
from panglot_worker.dialects.sagemaker.bodies import array_to_npy as _array_to_npy

_encoder_map = WRITERS

SUPPORTED_CONTENT_TYPES = set(_encoder_map)

__all__ = ["SUPPORTED_CONTENT_TYPES", "_array_to_csv", "_array_to_json", "_array_to_npy", "_encoder_map", "encode"]
