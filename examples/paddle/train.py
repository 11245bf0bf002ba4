"""Learns the digits of scikit-learn in a few seconds; writes digits.pdparams."""

import os

import numpy as np
import paddle
from net import DigitNet
from paddle import nn
from sklearn.datasets import load_digits

WEIGHTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "digits.pdparams")
UNSEEN = 300


def main(steps=400):
    paddle.seed(1)
    numbers = np.random.RandomState(1)
    digits = load_digits()
    pictures = (digits.images / 16).astype("float32")[:, None]
    labels = digits.target.astype("int64")
    net = DigitNet()
    optimizer = paddle.optimizer.Adam(0.003, parameters=net.parameters())
    for _ in range(steps):
        rows = numbers.randint(0, len(labels) - UNSEEN, 64)
        loss = nn.functional.cross_entropy(net(paddle.to_tensor(pictures[rows])), paddle.to_tensor(labels[rows]))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
    net.eval()
    guessed = net(paddle.to_tensor(pictures[-UNSEEN:])).argmax(axis=1).numpy()
    print(f"right on {(guessed == labels[-UNSEEN:]).mean():.1%} of {UNSEEN} digits it has not seen")
    paddle.save(net.state_dict(), WEIGHTS)


if __name__ == "__main__":
    main()
