"""`self.handle = MicroBatching(self)`: a batch in small pieces, whose steps run side by side in threads."""

import time
from concurrent.futures import ThreadPoolExecutor
from copy import copy

HANDLER_METHODS = ["preprocess", "inference", "postprocess"]


class MicroBatching:
    """Calls the three steps of a handler for each piece of a batch."""

    def __init__(self, parent_handler, micro_batch_size=1, parallelism=None):
        self.handler = parent_handler
        self.micro_batch_size = micro_batch_size
        self._parallelism = dict(parallelism or {})
        self._pools = {}
        self._make_pools()

    @property
    def parallelism(self):
        return copy(self._parallelism)

    @parallelism.setter
    def parallelism(self, parallelism):
        self._parallelism.update(parallelism)
        self._make_pools()

    def _make_pools(self):
        self.shutdown()
        for step in HANDLER_METHODS:
            self._pools[step] = ThreadPoolExecutor(max(1, self._parallelism.get(step, 1)))

    def shutdown(self):
        for pool in self._pools.values():
            pool.shutdown()

    def handle(self, data):
        size = self.micro_batch_size
        results = [data[start : start + size] for start in range(0, len(data), size)]
        futures = None
        for step in HANDLER_METHODS:
            futures = self._begun(step, results if futures is None else futures, futures is not None)
        return [item for future in futures for item in future.result()]

    def _begun(self, step, inputs, waits):
        call, pool = getattr(self.handler, step), self._pools[step]
        if not waits:
            return [pool.submit(call, piece) for piece in inputs]
        return [pool.submit(lambda before=before: call(before.result())) for before in inputs]

    def __call__(self, data, context):
        started = time.time()
        self.handler.context = context
        if self.handler._is_describe():
            output = [self.handler.describe_handle()]
        elif self.handler._is_explain():
            output = self.handler.explain_handle(self.handler.preprocess(data), data)
        else:
            output = self.handle(data)
        context.metrics.add_time("HandlerTime", round((time.time() - started) * 1000, 2))
        return output
