"""The base of handlers: loads the model of an archive, and runs it in three steps."""

import abc
import importlib
import os
import pickle
import time

import torch

from ts.handler_utils.timer import timed
from ts.utils.util import list_classes_from_module, load_label_mapping

WHOLE = (
    "%s has more in it than weights, which torch.load refuses since torch 2.6: save model.state_dict() alone; or, if "
    "you trust the file, load it in a handler of your own with torch.load(path, weights_only=False)"
)


class BaseHandler(abc.ABC):  # noqa: B024  as in the original, whose children may be abstract
    """Loads TorchScript, weights with a model's class, or ONNX; `preprocess`, `inference` and `postprocess`."""

    def __init__(self):
        self.model = None
        self.mapping = None
        self.device = None
        self.initialized = False
        self.context = None
        self.model_pt_path = None
        self.manifest = None
        self.map_location = None
        self.explain = False
        self.target = 0
        self.profiler_args = {}

    def initialize(self, context):
        self.model_yaml_config = getattr(context, "model_yaml_config", None) or {}
        properties = context.system_properties
        gpu = properties.get("gpu_id")
        on_gpu = torch.cuda.is_available() and gpu is not None
        self.map_location = "cuda" if on_gpu else "cpu"
        self.device = torch.device("cuda:%s" % gpu if on_gpu else "cpu")
        self.manifest = context.manifest
        model_dir, parts = properties.get("model_dir"), self.manifest["model"]
        self.model_pt_path = os.path.join(model_dir, parts["serializedFile"]) if parts.get("serializedFile") else None
        self.model = self._loaded(model_dir, parts.get("modelFile", ""))
        self._compile()
        self.mapping = load_label_mapping(os.path.join(model_dir, "index_to_name.json"))
        self.initialized = True

    def _loaded(self, model_dir, model_file):
        path = self.model_pt_path or ""
        if model_file:
            model = self._load_pickled_model(model_dir, model_file, self.model_pt_path)
            model.to(self.device)
            model.eval()
            return model
        if path.endswith(".pt"):
            model = self._load_torchscript_model(path)
            model.eval()
            return model
        if path.endswith(".onnx"):
            import onnxruntime

            first = ["CUDAExecutionProvider"] if self.map_location == "cuda" else []
            return onnxruntime.InferenceSession(path, providers=[*first, "CPUExecutionProvider"])
        if path.endswith(".so"):
            return torch._export.aot_load(path, self.map_location)
        raise RuntimeError("No model weights could be loaded")

    def _load_torchscript_model(self, model_pt_path):
        return torch.jit.load(model_pt_path, map_location=self.device)

    def _load_pickled_model(self, model_dir, model_file, model_pt_path):
        if not os.path.isfile(os.path.join(model_dir, model_file)):
            raise RuntimeError("Missing the model.py file")
        kinds = list_classes_from_module(importlib.import_module(os.path.basename(model_file).split(".")[0]))
        if len(kinds) != 1:
            raise ValueError("Expected only one class as model definition. %s" % kinds)
        model = kinds[0]()
        if model_pt_path:
            model.load_state_dict(self._weights(model_pt_path))
        return model

    def _weights(self, path):
        try:
            return torch.load(path, map_location=self.device)
        except pickle.UnpicklingError as error:
            raise RuntimeError(WHOLE % os.path.basename(path)) from error

    def _compile(self):
        """`torch.compile` by the key `pt2` of model-config.yaml; where that fails the model stays as it is."""
        wanted = self.model_yaml_config.get("pt2")
        if not wanted or (isinstance(wanted, dict) and "export" in wanted):
            return
        options = {"backend": wanted} if isinstance(wanted, str) else dict(wanted)
        if "compile" in options:
            options = dict(options["compile"])
            if options.pop("enable", False) is not True:
                return
        try:
            self.model = torch.compile(self.model, **options)
        except Exception as error:
            print("the model is not compiled: %s" % error)

    @timed
    def preprocess(self, data):
        return torch.as_tensor(data, device=self.device)

    @timed
    def inference(self, data, *args, **kwargs):
        with torch.inference_mode():
            return self.model(data.to(self.device), *args, **kwargs)

    @timed
    def postprocess(self, data):
        return data.tolist()

    def handle(self, data, context):
        started = time.time()
        self.context = context
        if self._is_describe():
            output = [self.describe_handle()]
        else:
            prepared = self.preprocess(data)
            if self._is_explain():
                output = self.explain_handle(prepared, data)
            else:
                output = self.postprocess(self.inference(prepared))
        context.metrics.add_time("HandlerTime", round((time.time() - started) * 1000, 2), None, "ms")
        return output

    def explain_handle(self, data_preprocess, raw_data):
        row, inputs, target = raw_data[0], None, 0
        if isinstance(row, dict):
            inputs = row.get("data") or row.get("body")
            target = row.get("target") or 0
        return self.get_insights(data_preprocess, inputs, target)

    def _is_explain(self):
        if self.context and self.context.get_request_header(0, "explain") == "True":
            self.explain = True
            return True
        return False

    def _is_describe(self):
        return bool(self.context and self.context.get_request_header(0, "describe") == "True")

    def describe_handle(self):
        return None

    def get_device(self):
        return self.device
