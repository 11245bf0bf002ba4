"""Reading results out of NDArrays."""

from __future__ import annotations

from typing import Any, Dict, List


def top_probability(data: Any, labels: List[str], top: int = 5) -> List[Dict[str, Any]]:
    """The `top` most likely labels of the first row."""
    import mxnet

    row = data[0] if len(data.shape) > 1 else data
    order = mxnet.nd.topk(row, k=min(top, len(labels))).asnumpy().astype("int").tolist()
    return [{"probability": float(row[index].asscalar()), "class": labels[index]} for index in order]
