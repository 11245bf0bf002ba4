"""In the manner of the XGBoost container's example: the bytes become a DMatrix by the container's own functions."""

import os

import sagemaker_xgboost_container.encoder as xgb_encoders
import xgboost as xgb


def model_fn(model_dir):
    booster = xgb.Booster()
    booster.load_model(os.path.join(model_dir, "booster.json"))
    return booster


def input_fn(request_body, request_content_type):
    if request_content_type == "text/libsvm":
        return xgb_encoders.libsvm_to_dmatrix(request_body)
    return xgb_encoders.csv_to_dmatrix(request_body)
