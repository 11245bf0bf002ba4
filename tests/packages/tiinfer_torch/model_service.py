"""Digits with PyTorch, in the manner of the platform's sample: base64 or addresses in, one digit out."""

import base64
import logging
import os
import urllib

import cv2
import numpy as np
import torch
from net import Net
from torchvision import transforms

import tiinfer


class Digits(tiinfer.Model):
    def __init__(self, model_dir: str):
        super().__init__(model_dir)
        self.ready = False
        self.device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
        self.shape = transforms.Compose(
            [transforms.Resize((28, 28)), transforms.Grayscale(), transforms.Normalize(0.1307 * 255, 0.3081 * 255)]
        )

    def load(self) -> bool:
        try:
            self.model = Net().to(self.device)
            self.model.load_state_dict(torch.load(os.path.join(self.model_dir, "model/mnist_cnn.pt"), self.device))
            self.model.eval()
            self.ready = True
        except Exception as error:
            logging.error("load model failed: %s", error)
        return self.ready

    def preprocess(self, request):
        if "images" not in request:
            return {"error": "invalid param"}
        try:
            return {"instances": [self._picture(text) for text in request["images"]]}
        except Exception as error:
            logging.error("preprocess failed: %s", error)
            return {"error": "preprocess failed"}

    def _picture(self, text):
        content = urllib.request.urlopen(text).read() if text.startswith("http") else base64.b64decode(text)
        pixels = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR)
        return self.shape(torch.Tensor(pixels).permute((2, 0, 1))).unsqueeze(0)

    def predict(self, request):
        if "instances" not in request:
            return request
        with torch.no_grad():
            return {"pred_out": self.model(torch.cat(request["instances"]).to(self.device)).argmax(1).tolist()}

    def postprocess(self, request):
        if "pred_out" not in request:
            return request
        return {"result": {"type": "classification", "model_name": "mnist-classify", "pred": request["pred_out"][0]}}
