"""Sequences as NVIDIA's clients send them: over HTTP, gRPC, and on a stream. Runs in an environment of its own."""

import queue
import sys

import numpy
import tritonclient.grpc as by_grpc
import tritonclient.http as by_http


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


main(*sys.argv[1:])
