"""What NVIDIA's client asks the models of `repository`. Runs in an environment of its own."""

import queue
import sys
import time
from pathlib import Path

import grpc
import ml_dtypes
import numpy
import tritonclient.grpc as by_grpc
import tritonclient.http as by_http
from tritonclient.utils import InferenceServerException

sys.path.append(str(Path(__file__).parents[2] / "v2" / "clients"))
KINDS = {"int32": "INT32", "object": "BYTES", "bfloat16": "BF16"}


def inputs(module, **values):
    made = []
    for name, value in values.items():
        array = numpy.array([[value]], object if isinstance(value, str) else None)
        kind = {"i": "int32", "f": ml_dtypes.bfloat16}.get(array.dtype.kind)
        array = array.astype(kind) if kind else array
        made.append(module.InferInput(name, list(array.shape), KINDS[array.dtype.name]))
        made[-1].set_data_from_numpy(array)
    return made


def streams(http, address):
    """Responses of several requests on one stream, errors among them."""
    client, answers = by_grpc.InferenceServerClient(address), queue.Queue()
    client.start_stream(callback=lambda result, error: answers.put((result, error)))
    started = time.monotonic()
    for number in range(20):
        client.async_stream_infer("sender", inputs(by_grpc, HOW="thread", N=number), request_id=str(number))
    got = {}
    for _ in range(20):
        result, error = answers.get(timeout=30)
        assert error is None, error
        got[result.get_response().id] = result.as_numpy("OUT").item()
    assert got == {str(number): number for number in range(20)}
    # Each takes a second: one after the other they would take twenty.
    assert time.monotonic() - started < 15
    client.async_stream_infer("sender", inputs(by_grpc, HOW="error", N=0))
    said = [answers.get(timeout=30) for _ in range(3)]
    assert [
        result.as_numpy("OUT").item() if error is None else "in between" in str(error) for result, error in said
    ] == [1, True, 2]
    client.stop_stream()


def cancelled(http, address):
    """A call that its client cancels, when the test says by a line that the model has it."""
    client, answers = by_grpc.InferenceServerClient(address), queue.Queue()
    call = client.async_infer(
        "various", inputs(by_grpc, WORD="wait"), callback=lambda result, error: answers.put(error)
    )
    sys.stdin.readline()
    call.cancel()
    assert "cancelled" in str(answers.get(timeout=30)).lower()
    client.start_stream(callback=lambda result, error: answers.put(error))
    client.async_stream_infer("sender", inputs(by_grpc, HOW="wait", N=0))
    sys.stdin.readline()
    client.stop_stream(cancel_requests=True)


def codes(http, address):
    """A TritonError of every code."""
    expected = [(400, "UNKNOWN"), (500, "INTERNAL"), (404, "NOT_FOUND"), (400, "INVALID_ARGUMENT")]
    expected += [(503, "UNAVAILABLE"), (501, "UNIMPLEMENTED"), (400, "ALREADY_EXISTS"), (400, "CANCELLED")]
    for code, (status, name) in enumerate(expected):
        for module, client in both(http, address):
            error = refusal(client, inputs(module, WORD="code", N=code))
            wanted = str(status if module is by_http else getattr(grpc.StatusCode, name))
            assert (error.message(), wanted in str(error.status())) == (f"code {code}", True), error


def refusal(client, values):
    try:
        client.infer("various", values)
    except InferenceServerException as error:
        return error
    raise AssertionError("no error")


def both(http, address):
    return (by_http, by_http.InferenceServerClient(http)), (by_grpc, by_grpc.InferenceServerClient(address))


def bf16(http, address):
    """BF16 in and out."""
    for module, client in both(http, address):
        result = client.infer("various", inputs(module, WORD="bf16", B=1.5))
        assert result.as_numpy("B").astype("float32").tolist() == [[3.0]]
        assert result.as_numpy("TEXT").item() == b"[[1.5]] 14"


{"streams": streams, "cancelled": cancelled, "codes": codes, "bf16": bf16}[sys.argv[1]](*sys.argv[2:])
