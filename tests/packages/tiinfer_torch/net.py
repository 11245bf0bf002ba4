import torch
from torch import nn
from torch.nn import functional


class Net(nn.Module):
    """Two convolutions, two layers."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3)
        self.conv2 = nn.Conv2d(32, 64, 3)
        self.fc1 = nn.Linear(9216, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.conv2(functional.relu(self.conv1(x)))), 2)
        return functional.log_softmax(self.fc2(functional.relu(self.fc1(torch.flatten(x, 1)))), dim=1)
