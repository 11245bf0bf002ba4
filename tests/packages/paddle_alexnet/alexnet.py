"""A net in the manner of AlexNet, narrow enough for tests, with weights by seed."""

import paddle
from paddle import nn


def alexnet(num_classes=50):
    paddle.seed(2012)
    model = nn.Sequential(
        nn.Conv2D(3, 16, 11, stride=4, padding=2), nn.ReLU(), nn.MaxPool2D(3, 2),
        nn.Conv2D(16, 24, 5, padding=2), nn.ReLU(), nn.MaxPool2D(3, 2),
        nn.Conv2D(24, 32, 3, padding=1), nn.ReLU(),
        nn.Conv2D(32, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2D(3, 2),
        nn.Flatten(), nn.Dropout(), nn.Linear(24 * 6 * 6, 256), nn.ReLU(), nn.Dropout(),
        nn.Linear(256, num_classes, weight_attr=nn.initializer.Normal(std=0.2)),
    )  # fmt: skip
    model.eval()
    return model
