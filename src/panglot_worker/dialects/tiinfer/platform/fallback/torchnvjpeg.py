"""JPEG pictures decoded on the GPU, by torchvision, for scripts that import torchnvjpeg."""

from __future__ import annotations

from typing import Any, List, Sequence

import torch
from torchvision.io import ImageReadMode, decode_jpeg


class Decoder:
    """Decodes to tensors of height, width and RGB channels on one GPU. Sizes and thread counts have no effect here."""

    def __init__(
        self,
        device_padding: int = 0,
        host_padding: int = 0,
        gpu_huffman: bool = True,
        device_id: int = 0,
        bath_size: int = 0,
        max_cpu_threads: int = 0,
        max_image_size: int = 0,
        stream: Any = None,
    ) -> None:
        self.device = torch.device("cuda", device_id)

    def decode(self, data: bytes, stream: Any = None) -> Any:
        """One picture. Raises RuntimeError when it is no JPEG."""
        return self.batch_decode([data])[0]

    def batch_decode(self, data_list: Sequence[bytes]) -> List[Any]:
        """Several pictures in one call. Raises RuntimeError when one is no JPEG."""
        if not all(data_list):
            raise RuntimeError("there is no image in an empty bytes object")
        encoded = [torch.frombuffer(bytearray(data), dtype=torch.uint8) for data in data_list]
        decoded = decode_jpeg(encoded, mode=ImageReadMode.RGB, device=self.device)
        return [picture.permute(1, 2, 0) for picture in decoded]
