import asyncio

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """`async def execute`, which leaves a task behind."""

    left = ()

    async def execute(self, requests):
        self.left = (*self.left, asyncio.ensure_future(self.later()))
        return [
            pb_utils.InferenceResponse([pb_utils.Tensor("DONE", np.array([sum(map(bool, self.finished()))], np.int32))])
        ]

    def finished(self):
        return [task.done() for task in self.left]

    async def later(self):
        await asyncio.sleep(0.01)
