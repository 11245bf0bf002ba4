"""Holds 1 GiB of GPU memory, all of it written."""

import torch

WEIGHT = torch.ones(1 << 30, dtype=torch.uint8, device="cuda")


def predict(number: int) -> dict:
    """Multiply by a number of the weight, on the GPU."""
    return {"answer": int(WEIGHT[number].item()) * number, "bytes": WEIGHT.numel()}
