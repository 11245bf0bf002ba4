"""Pictures as NDArrays of height x width x channels."""

from __future__ import annotations

from typing import Any


def read(data: Any, flag: int = 1, to_rgb: bool = True) -> Any:
    """Decode the bytes of a picture; `flag` 0 is grey."""
    import mxnet

    return mxnet.image.imdecode(data, flag=flag, to_rgb=to_rgb)


def write(image: Any, format: str = "jpeg") -> bytes:
    """Encode a picture."""
    import io

    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(image.asnumpy().astype("uint8")).save(buffer, format)
    return buffer.getvalue()


def resize(image: Any, new_width: int, new_height: int, interp: int = 2) -> Any:
    import mxnet

    return mxnet.image.imresize(image, new_width, new_height, interp)


def fixed_crop(image: Any, x0: int, y0: int, width: int, height: int, size: Any = None, interp: int = 2) -> Any:
    import mxnet

    return mxnet.image.fixed_crop(image, x0, y0, width, height, size, interp)


def color_normalize(image: Any, mean: Any, std: Any = None) -> Any:
    import mxnet

    return mxnet.image.color_normalize(image, mean, std)


def transform_shape(image: Any, dim_order: str = "NCHW") -> Any:
    """One picture as a batch of one, channels first for NCHW."""
    import mxnet

    if dim_order == "NCHW":
        image = mxnet.nd.transpose(image, (2, 0, 1))
    return mxnet.nd.expand_dims(image, axis=0)
