"""How often a stage runs."""

from __future__ import annotations

from typing import Dict, List, Optional, Type

from mosec.worker import Worker


class Runtime:
    """A stage and its numbers, for `Server.register_runtime`."""

    def __init__(
        self,
        worker: Type[Worker],
        num: int = 1,
        max_batch_size: int = 1,
        max_wait_time: int = 0,
        timeout: float = 0.0,
        start_method: str = "spawn",
        env: Optional[List[Dict[str, str]]] = None,
    ) -> None:
        self.worker = worker
        self.num = num
        self.max_batch_size = max_batch_size
        self.max_wait_time = max_wait_time
        self.timeout = timeout
        self.start_method = start_method
        self.env = env
