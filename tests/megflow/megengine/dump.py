"""A small classification network, traced on [1, 3, 224, 224] and dumped for inference, as in the tutorial."""

import sys

import megengine as mge
import megengine.functional as F  # noqa: N812
import megengine.module as M  # noqa: N812
import numpy as np
from megengine import jit


class Net(M.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = M.Conv2d(3, 8, 7, stride=4, padding=3)
        self.bn1 = M.BatchNorm2d(8)
        self.conv2 = M.Conv2d(8, 16, 3, stride=2, padding=1)
        self.fc = M.Linear(16 * 49, 1000)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.avg_pool2d(F.relu(self.conv2(x)), 4)
        return self.fc(F.flatten(x, 1))


def main(graph_name):
    mge.random.seed(7)
    model = Net()
    model.eval()
    data = mge.Tensor(np.random.random((1, 3, 224, 224)).astype(np.float32))

    @jit.trace(symbolic=True, capture_as_const=True)
    def pred_func(data):
        return model(data)

    pred_func(data)
    pred_func.dump(
        graph_name,
        arg_names=["data"],
        optimize_for_inference=True,
        enable_fuse_conv_bias_nonlinearity=True,
    )


if __name__ == "__main__":
    main(sys.argv[1])
