from typing import Any, Dict

import torch
from torch import nn

device = 0 if torch.cuda.is_available() else -1


class EndpointHandler:
    def __init__(self, path=""):
        torch.manual_seed(0)
        self.model = nn.Linear(3, 2).eval()

    def __call__(self, data: Dict[str, Any]) -> Any:
        inputs = torch.tensor(data["inputs"], dtype=torch.float32)
        with torch.no_grad():
            output = self.model(inputs)
        return output if data.get("raw") else output.softmax(-1).tolist()
