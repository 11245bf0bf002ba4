"""Sequences as NVIDIA's clients send them: over HTTP, gRPC, and on a stream. Runs in an environment of its own."""

import asyncio
import queue
import sys

import numpy
import tritonclient.grpc as by_grpc
import tritonclient.grpc.aio as by_grpc_aio
import tritonclient.http as by_http
import tritonclient.http.aio as by_http_aio


def number(module, value):
    given = module.InferInput("X", [1, 1], "INT32")
    given.set_data_from_numpy(numpy.array([[value]], numpy.int32))
    return [given]


def main(http, address):
    for module, client in (
        (by_http, by_http.InferenceServerClient(http)),
        (by_grpc, by_grpc.InferenceServerClient(address)),
    ):
        for model, names, first in (("summing", (71, 72), 0), ("remembering", ("left", "right"), 100)):
            for step in range(4):
                for name in names:
                    result = client.infer(
                        model, number(module, step), sequence_id=name, sequence_start=step == 0, sequence_end=step == 3
                    )
                    assert result.as_numpy("SUM").item() == first + sum(range(step + 1))
    client, answers = by_grpc.InferenceServerClient(address), queue.Queue()
    client.start_stream(callback=lambda result, error: answers.put((result, error)))
    for step in range(20):
        flags = {"sequence_start": step < 2, "sequence_end": step >= 18}
        client.async_stream_infer(
            "summing", number(by_grpc, step), sequence_id=80 + step % 2, request_id=str(step), **flags
        )
    got = {}
    for _ in range(20):
        result, error = answers.get(timeout=30)
        assert error is None, error
        got[int(result.get_response().id)] = result.as_numpy("SUM").item()
    assert got == {step: sum(range(step % 2, step + 1, 2)) for step in range(20)}
    client.stop_stream()
    asyncio.run(by_aio(http, address))


async def by_aio(http, address):
    by_both = (
        (by_http, by_http_aio.InferenceServerClient(http)),
        (by_grpc, by_grpc_aio.InferenceServerClient(address)),
    )
    for module, client in by_both:

        async def whole(name, module=module, client=client):
            for step in range(6):
                flags = {"sequence_id": name, "sequence_start": step == 0, "sequence_end": step == 5}
                result = await client.infer("summing", number(module, step), **flags)
                assert result.as_numpy("SUM").item() == sum(range(step + 1))

        # More sequences than the model runs at a time.
        await asyncio.gather(*(whole(name) for name in range(90, 98)))
    got = []

    async def requests():
        for step in range(10):
            flags = {"sequence_id": 99, "sequence_start": step == 0, "sequence_end": step == 9}
            yield {"model_name": "summing", "inputs": number(by_grpc, step), **flags}

    async for result, error in client.stream_infer(requests()):
        assert error is None, error
        got.append(result.as_numpy("SUM").item())
    assert got == [sum(range(step + 1)) for step in range(10)]
    for _, client in by_both:
        await client.close()


main(*sys.argv[1:])
