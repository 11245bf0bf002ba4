"""<script>window.harmed = true</script><img src=x onerror="window.harmed = true"> & \u202eltr\u0007 \ud800"""

from __future__ import annotations

from typing import Any


def predict(request: Any) -> dict[str, Any]:
    raise ValueError("</pre><script>window.harmed = true</script>\u202e\x1b[31m\ud800 " + repr(request))


def example() -> dict[str, Any]:
    return {"<img src=x onerror='window.harmed = true'>": "\u202e</script><script>window.harmed = true</script>"}
