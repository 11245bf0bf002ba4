"""From bodies to a DMatrix."""

from panglot_worker.dialects.sagemaker.libsvm import (
    csv_to_dmatrix,
    decode,
    libsvm_to_dmatrix,
    recordio_protobuf_to_dmatrix,
)

__all__ = ["csv_to_dmatrix", "decode", "libsvm_to_dmatrix", "recordio_protobuf_to_dmatrix"]
