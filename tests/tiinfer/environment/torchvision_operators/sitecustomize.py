"""For the tests alone: torchvision without its compiled part, whose operators must at least be declared."""

import sys

OPERATORS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)
kept = []


class Declare:
    """Declares the operators when torchvision is about to be imported."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "torchvision" and not kept:
            import torch

            kept.append(torch.library.Library("torchvision", "DEF"))
            for operator in OPERATORS:
                kept[0].define(operator)


sys.meta_path.insert(0, Declare)
