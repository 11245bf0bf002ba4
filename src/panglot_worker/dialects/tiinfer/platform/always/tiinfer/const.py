"""The platform's variables. What a script sets wins over the environment."""

from __future__ import annotations

import logging
import os
from typing import Dict, Optional

IMPORT_MODULE_NAME = "model_service"
MODEL_DIR = "TI_MODEL_DIR"
PREPROCESS_NUMS = "TI_PREPROCESS_NUMS"
INFERENCE_NUMS = "TI_INFERENCE_NUMS"
POSTPROCESS_NUMS = "TI_POSTPROCESS_NUMS"
MAX_BATCH_SIZE = "TI_INFERENCE_MAX_BATCH_SIZE"
DEFAULTS = {PREPROCESS_NUMS: 0, INFERENCE_NUMS: 1, POSTPROCESS_NUMS: 0, MAX_BATCH_SIZE: 1}

_set_by_script: Dict[str, int] = {}


def get_int_env(env_name: str, default_var: int) -> int:
    """The whole number in a variable; the default when it is unset or holds something else."""
    try:
        return int(os.environ[env_name])
    except (KeyError, ValueError):
        return default_var


def given(name: str) -> Optional[int]:
    """The count a script or the environment gave; None when neither did."""
    if name in _set_by_script:
        return _set_by_script[name]
    try:
        return int(os.environ[name])
    except (KeyError, ValueError):
        return None


def _get(name: str) -> int:
    value = given(name)
    return DEFAULTS[name] if value is None else value


def get_ti_model_dir() -> str:
    """The folder the model's files are in, as given to `Model.__init__`."""
    return os.environ.get(MODEL_DIR, "/data/model")


def get_ti_preprocess_nums() -> int:
    return _get(PREPROCESS_NUMS)


def get_ti_inference_nums() -> int:
    return _get(INFERENCE_NUMS)


def get_ti_postprocess_nums() -> int:
    return _get(POSTPROCESS_NUMS)


def get_ti_inference_max_batch_size() -> int:
    return _get(MAX_BATCH_SIZE)


def set_ti_preprocess_nums(num: int) -> None:
    _set_by_script[PREPROCESS_NUMS] = num


def set_ti_inference_nums(num: int) -> None:
    _set_by_script[INFERENCE_NUMS] = num


def set_ti_postprocess_nums(num: int) -> None:
    _set_by_script[POSTPROCESS_NUMS] = num


def set_ti_inference_max_batch_size(batch: int) -> None:
    _set_by_script[MAX_BATCH_SIZE] = batch


def Is_Multi_Framework_Type() -> bool:  # noqa: N802
    """Whether preprocess and postprocess are stages of their own."""
    return get_ti_preprocess_nums() != 0 or get_ti_postprocess_nums() != 0


def print_envs() -> None:
    """Log all of the platform's variables."""
    logging.info("%s=%s", MODEL_DIR, get_ti_model_dir())
    for name in DEFAULTS:
        logging.info("%s=%s", name, _get(name))
