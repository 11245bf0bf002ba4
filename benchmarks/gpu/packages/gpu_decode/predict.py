"""ResNet-50 in half precision with random weights: JPEGs in, their classes out, all of it on the GPU.

Without a GPU all of it runs on the CPU, to try the benchmark itself. NET names another net of torchvision.
"""

import os
import time
import warnings

import torch
import torchvision
from torch.nn import functional
from torchvision.io import ImageReadMode, decode_jpeg

warnings.filterwarnings("ignore", message="The given buffer is not writable")
GPU = torch.cuda.is_available()
DEVICE = "cuda" if GPU else "cpu"
KIND = torch.float16 if GPU else torch.float32
LOOP = "application/x-loop"
SIZES = (1, 8, 32, 64, 128) if GPU else (1, 8)


class Model:
    def load(self):
        torch.backends.cudnn.benchmark = True
        net = getattr(torchvision.models, os.environ.get("NET", "resnet50"))(weights=None)
        self.net = net.eval().to(DEVICE, KIND, memory_format=torch.channels_last)
        self.mean = torch.tensor([0.485, 0.456, 0.406], device=DEVICE, dtype=KIND).view(1, 3, 1, 1) * 255
        self.scale = torch.tensor([0.229, 0.224, 0.225], device=DEVICE, dtype=KIND).view(1, 3, 1, 1) * 255
        for size in SIZES:
            self.classes(torch.zeros((size, 3, 224, 224), device=DEVICE, dtype=KIND))

    def predict_batch(self, files):
        if files[0].type == LOOP:
            return [self.loop(file.bytes) for file in files]
        return self.run([file.view for file in files])

    def loop(self, picture, batch=128, seconds=3.0):
        """Pictures per second when nothing but this script is at work, here in the very process that serves it."""
        bodies = [memoryview(bytes(bytearray(picture))) for _ in range(batch)]
        began, count = time.monotonic(), 0
        while time.monotonic() - began < seconds:
            count += len(self.run(bodies))
        return count / (time.monotonic() - began)

    @torch.inference_mode()
    def run(self, bodies):
        """The classes of pictures; the bare loop of the benchmark calls this too."""
        encoded = [torch.frombuffer(body, dtype=torch.uint8) for body in bodies]
        pictures = decode_jpeg(encoded, mode=ImageReadMode.RGB, device=DEVICE)
        small = [functional.interpolate(picture[None].to(KIND), (224, 224), mode="bilinear") for picture in pictures]
        batch = torch.cat(small).contiguous(memory_format=torch.channels_last)
        # A few sizes only, so that the convolutions tried out at load are those that run.
        size = next((size for size in SIZES if size >= len(batch)), len(batch))
        padded = functional.pad(batch, (0, 0, 0, 0, 0, 0, 0, size - len(batch))) if size > len(batch) else batch
        return self.classes(padded)[: len(bodies)].tolist()

    @torch.inference_mode()
    def classes(self, batch):
        return self.net((batch - self.mean) / self.scale).argmax(1)
