"""The net: two convolutions and a layer for the ten digits, for pictures of 8 by 8."""

from paddle import nn


class DigitNet(nn.Layer):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2D(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2D(8, 16, 3, stride=2, padding=1), nn.ReLU()
        )
        self.classifier = nn.Sequential(nn.Flatten(), nn.Linear(16 * 4 * 4, 10))

    def forward(self, x):
        return self.classifier(self.features(x))
