"""What NVIDIA's clients ask ensembles and models that call others. Runs in an environment of its own."""

import asyncio
import json
import queue
import sys

import numpy
import tritonclient.grpc as by_grpc
import tritonclient.grpc.aio as by_grpc_aio
import tritonclient.http as by_http
import tritonclient.http.aio as by_http_aio
from tritonclient.utils import InferenceServerException


def text(module, name, *values, rows=True):
    array = numpy.array([[value] for value in values] if rows else values, object)
    given = module.InferInput(name, list(array.shape), "BYTES")
    given.set_data_from_numpy(array)
    return given


def clients(http, address):
    return (by_http, by_http.InferenceServerClient(http)), (by_grpc, by_grpc.InferenceServerClient(address))


def refusal(client, inputs):
    try:
        client.infer("pipeline", inputs)
    except InferenceServerException as error:
        return error.message()
    raise AssertionError("no error")


def ensembles(http, address, words):
    for module, client in clients(http, address):
        result = client.infer("pipeline", [text(module, "SENTENCE", "abba", "cab")], request_id="seven")
        assert [word.decode() for word in result.as_numpy("ANSWER").ravel()] == words
        assert result.as_numpy("scores").shape == (2, 3)
        wanted = [module.InferRequestedOutput("ANSWER")]
        result = client.infer("pipeline", [text(module, "SENTENCE", "cab")], outputs=wanted)
        assert result.as_numpy("scores") is None
        how = [text(module, "HOW", "chain", rows=False), text(module, "TEXT", "cab", rows=False)]
        assert client.infer("bls", how).as_numpy("WORD")[0].decode() == words[1]
        refused = refusal(client, [text(module, "SENTENCE", "refuse")])
        assert refused == "in ensemble pipeline, step 1 (letters): no such text"


def streams(http, address, words):
    client, answers = by_grpc.InferenceServerClient(address), queue.Queue()
    client.start_stream(callback=lambda result, error: answers.put((result, error)))
    for number in range(10):
        client.async_stream_infer("pipeline", [text(by_grpc, "SENTENCE", "cab")], request_id=str(number))
    got = set()
    for _ in range(10):
        result, error = answers.get(timeout=30)
        assert error is None, error
        assert result.as_numpy("ANSWER").item().decode() == words[1]
        got.add(result.get_response().id)
    assert got == {str(number) for number in range(10)}
    client.stop_stream()


def decoupled(http, address, words):
    client, answers = by_grpc.InferenceServerClient(address), queue.Queue()
    client.start_stream(callback=lambda result, error: answers.put((result, error)))
    number = by_grpc.InferInput("N", [1], "INT32")
    number.set_data_from_numpy(numpy.array([3], numpy.int32))
    assert client.get_model_config("speech").config.model_transaction_policy.decoupled
    for name in ("a", "b"):
        client.async_stream_infer("speech", [number], request_id=name, enable_empty_final_response=True)
    said = {"a": [], "b": []}
    ended = 0
    while ended < 2:
        result, error = answers.get(timeout=30)
        assert error is None, error
        response = result.get_response()
        if response.outputs:
            said[response.id].append(result.as_numpy("said").item().decode())
        ended += response.parameters["triton_final_response"].bool_param
    assert said == {name: [f"TOKEN {at} OF 3" for at in range(3)] for name in "ab"}, said
    client.stop_stream()


def aio(http, address, words):
    async def ask(module, client):
        asked = [client.infer("pipeline", [text(module, "SENTENCE", "cab")]) for _ in range(10)]
        for result in await asyncio.gather(*asked):
            assert result.as_numpy("ANSWER").item().decode() == words[1]
        await client.close()

    async def both():
        await ask(by_http, by_http_aio.InferenceServerClient(http))
        await ask(by_grpc, by_grpc_aio.InferenceServerClient(address))

    asyncio.run(both())


if __name__ == "__main__":
    what, http, address, words = sys.argv[1:]
    {"ensembles": ensembles, "streams": streams, "aio": aio, "decoupled": decoupled}[what](
        http, address, json.loads(words)
    )
