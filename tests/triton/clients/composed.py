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
        for how in ("chain", "ensemble"):
            given = [text(module, "HOW", how, rows=False), text(module, "TEXT", "cab", rows=False)]
            for result in await asyncio.gather(*(client.infer("bls", given) for _ in range(10))):
                assert result.as_numpy("WORD")[0].decode() == words[1]
        given = [text(module, "HOW", "error", rows=False), text(module, "TEXT", "refuse", rows=False)]
        assert (await client.infer("bls", given)).as_numpy("WORD")[0].decode() == "no such text 3"

    async def both():
        by_both = (
            (by_http, by_http_aio.InferenceServerClient(http)),
            (by_grpc, by_grpc_aio.InferenceServerClient(address)),
        )
        for module, client in by_both:
            await ask(module, client)
            await client.close()

    asyncio.run(both())


def aio_streams(http, address, words):
    """Responses of decoupled models, with answers of BLS among them, to a client that awaits them."""
    counts = {"a": 3, "b": 0, "c": 1}

    async def requests():
        for name, count in counts.items():
            number = by_grpc.InferInput("N", [1], "INT32")
            number.set_data_from_numpy(numpy.array([count], numpy.int32))
            # Unlike the other client, this one cannot ask for an empty response at the end.
            yield {"model_name": "speech", "inputs": [number], "request_id": name}
        how = [text(by_grpc, "HOW", "stream", rows=False), text(by_grpc, "TEXT", "3", rows=False)]
        yield {"model_name": "bls", "inputs": how, "request_id": "bls"}

    async def main():
        said, by_bls = {name: [] for name in counts}, []
        async with by_grpc_aio.InferenceServerClient(address) as client:
            async for result, error in client.stream_infer(requests()):
                assert error is None, error
                name = result.get_response().id
                if name == "bls":
                    by_bls.append(result.as_numpy("WORD")[0].decode())
                else:
                    said[name].append(result.as_numpy("said").item().decode())
        assert said == {name: [f"TOKEN {at} OF {count}" for at in range(count)] for name, count in counts.items()}, said
        assert by_bls == ["token 0|token 1|token 2"]

    asyncio.run(main())


if __name__ == "__main__":
    what, http, address, words = sys.argv[1:]
    ways = {"ensembles": ensembles, "streams": streams, "aio": aio, "decoupled": decoupled, "aio_streams": aio_streams}
    ways[what](http, address, json.loads(words))
