"""PyTriton: python pytriton_echo.py PORT"""

import sys

import numpy as np
from pytriton.decorators import batch
from pytriton.model_config import DynamicBatcher, ModelConfig, Tensor
from pytriton.triton import Triton, TritonConfig


@batch
def echo(x):
    return {"y": x}


if __name__ == "__main__":
    port = int(sys.argv[1])
    config = TritonConfig(http_address="127.0.0.1", http_port=port, grpc_port=port + 1, metrics_port=port + 2)
    with Triton(config=config) as triton:
        triton.bind(
            "echo", echo,
            inputs=[Tensor(name="x", dtype=np.float32, shape=(64,))],
            outputs=[Tensor(name="y", dtype=np.float32, shape=(64,))],
            config=ModelConfig(max_batch_size=32, batcher=DynamicBatcher(max_queue_delay_microseconds=0)),
        )  # fmt: skip
        triton.serve()
