"""Train the sample's network on digits: `python torch_digits.py FOLDER`, which holds net.py and gets the weights."""

from __future__ import annotations

import os
import sys

import torch
import torch.nn.functional as functional

folder = sys.argv[1]
sys.path[:0] = [folder, os.path.dirname(__file__)]
from digits import TRAINED, pictures  # noqa: E402
from net import Net  # noqa: E402

torch.manual_seed(0)
images, labels = pictures()
inputs = (torch.tensor(images[:TRAINED], dtype=torch.float32).unsqueeze(1) / 255 - 0.1307) / 0.3081
wanted = torch.tensor(labels[:TRAINED])
net = Net()
# The convolutions stay as they were made: random features do for digits, and the rest learns in seconds.
with torch.no_grad():
    features = functional.max_pool2d(functional.relu(net.conv2(functional.relu(net.conv1(inputs)))), 2).flatten(1)
learning = torch.optim.Adam([*net.fc1.parameters(), *net.fc2.parameters()], 1e-3)
for _ in range(10):
    for batch in torch.randperm(TRAINED).split(200):
        learning.zero_grad()
        guess = functional.log_softmax(net.fc2(functional.relu(net.fc1(features[batch]))), dim=1)
        functional.nll_loss(guess, wanted[batch]).backward()
        learning.step()
os.makedirs(os.path.join(folder, "model"), exist_ok=True)
torch.save(net.state_dict(), os.path.join(folder, "model", "mnist_cnn.pt"))
