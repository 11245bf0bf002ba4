import torch
from ts.torch_handler.base_handler import BaseHandler


class AdderHandler(BaseHandler):
    def preprocess(self, data):
        return torch.tensor([row.get("data") or row.get("body") for row in data], dtype=torch.float32)
