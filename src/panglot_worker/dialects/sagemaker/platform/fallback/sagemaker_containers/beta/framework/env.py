"""Where the model and the code lie."""

import os

model_dir = os.environ.get("SM_MODEL_DIR", "/opt/ml/model")
code_dir = os.environ.get("SAGEMAKER_SUBMIT_DIRECTORY", os.path.join(model_dir, "code"))
