"""Awaits several calls at once."""

import asyncio

import numpy as np
import triton_python_backend_utils as pb_utils


def called(model, output, name, array):
    tensors = [pb_utils.Tensor(name, array)]
    return pb_utils.InferenceRequest(model_name=model, requested_output_names=[output], inputs=tensors)


class TritonPythonModel:
    async def execute(self, requests):
        return [await self.answered(request) for request in requests]

    async def answered(self, request):
        texts = request.inputs()[0].as_numpy()
        calls = [called("pipeline", "ANSWER", "SENTENCE", np.array([[text]], object)) for text in texts]
        responses = await asyncio.gather(*(call.async_exec() for call in calls))
        words = np.array([response.output_tensors()[0].as_numpy()[0, 0] for response in responses], object)
        tokens = 0
        stream = await called("counter", "TOKEN", "N", np.array([5], np.int32)).async_exec(decoupled=True)
        async for response in stream:
            tokens += len(response.output_tensors())
        outputs = [pb_utils.Tensor("WORDS", words), pb_utils.Tensor("TOKENS", np.array([tokens], np.int32))]
        return pb_utils.InferenceResponse(outputs)
