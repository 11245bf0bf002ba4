"""What scripts for Tencent TI-ONE import as `tiinfer`.

A script defines one subclass of `Model` in `model_service.py`, or adds `mosec.Worker` classes with `append_worker`.
The image helpers are in `tiinfer.utils`, which needs numpy, OpenCV and Pillow.
"""

from tiinfer.const import (
    IMPORT_MODULE_NAME,
    Is_Multi_Framework_Type,
    get_int_env,
    get_ti_inference_max_batch_size,
    get_ti_inference_nums,
    get_ti_model_dir,
    get_ti_postprocess_nums,
    get_ti_preprocess_nums,
    print_envs,
    set_ti_inference_max_batch_size,
    set_ti_inference_nums,
    set_ti_postprocess_nums,
    set_ti_preprocess_nums,
)
from tiinfer.model import Model
from tiinfer.server import Inference, Postprocess, Preprocess, load_model_service, load_workers
from tiinfer.worker import Worker, append_worker, get_mosec_workers

__all__ = [
    "IMPORT_MODULE_NAME",
    "Inference",
    "Is_Multi_Framework_Type",
    "Model",
    "Postprocess",
    "Preprocess",
    "Worker",
    "append_worker",
    "get_int_env",
    "get_mosec_workers",
    "get_ti_inference_max_batch_size",
    "get_ti_inference_nums",
    "get_ti_model_dir",
    "get_ti_postprocess_nums",
    "get_ti_preprocess_nums",
    "load_model_service",
    "load_workers",
    "print_envs",
    "set_ti_inference_max_batch_size",
    "set_ti_inference_nums",
    "set_ti_postprocess_nums",
    "set_ti_preprocess_nums",
]
