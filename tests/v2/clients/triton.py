"""What NVIDIA's client asks, in every one of its modes. Runs in an environment of its own."""

import queue
import sys

import numpy
import report
import tritonclient.grpc as by_grpc
import tritonclient.grpc.aio as by_grpc_aio
import tritonclient.http as by_http
import tritonclient.http.aio as by_http_aio

MODEL, ROWS = "tensors", "tensor_rows"
TYPES = {
    "BOOL": numpy.bool_, "UINT8": numpy.uint8, "UINT16": numpy.uint16, "UINT32": numpy.uint32, "UINT64": numpy.uint64,
    "INT8": numpy.int8, "INT16": numpy.int16, "INT32": numpy.int32, "INT64": numpy.int64, "FP16": numpy.float16,
    "FP32": numpy.float32, "FP64": numpy.float64,
}  # fmt: skip


def tensor(module, name, array, **how):
    datatype = "BYTES" if array.dtype == object else {kind: name for name, kind in TYPES.items()}[array.dtype.type]
    found = module.InferInput(name, list(array.shape), datatype)
    found.set_data_from_numpy(array, **how)
    return found


X = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)


def same(result, expected, name="x"):
    found = result.as_numpy(name)
    assert found.dtype == expected.dtype or expected.dtype == object, found.dtype
    assert found.shape == expected.shape, found.shape
    assert (found == expected).all(), found


def both(address):
    return (by_http, by_http.InferenceServerClient(address[0])), (by_grpc, by_grpc.InferenceServerClient(address[1]))


def check_health_and_metadata(*address):
    for module, client in both(address):
        assert client.is_server_live()
        assert client.is_server_ready()
        assert client.is_model_ready(MODEL)
        assert client.is_model_ready(MODEL, "1")
        assert not client.is_model_ready("other")
        about = client.get_model_metadata(MODEL)
        assert (about["name"] if module is by_http else about.name) == MODEL
        server = client.get_server_metadata()
        assert "binary_tensor_data" in (server["extensions"] if module is by_http else server.extensions)


def check_configuration_statistics_and_index(*address):
    http, grpc = (client for _, client in both(address))
    assert http.get_model_config(MODEL)["name"] == MODEL
    assert grpc.get_model_config(MODEL).config.name == MODEL
    assert http.get_inference_statistics(MODEL)["model_stats"][0]["name"] == MODEL
    assert grpc.get_inference_statistics().model_stats[0].name == MODEL
    assert http.get_model_repository_index()[0]["state"] == "READY"
    assert grpc.get_model_repository_index().models[0].state == "READY"


def check_what_perf_analyzer_asks_before_it_begins(*address):
    """Metadata and configuration of the model, the server's extensions, then statistics by their names."""
    http, grpc = (client for _, client in both(address))
    about, config = http.get_model_metadata(MODEL), http.get_model_config(MODEL)
    assert [one["name"] for one in about["inputs"]] == [one["name"] for one in config["input"]]
    assert [one["name"] for one in about["outputs"]] == [one["name"] for one in config["output"]]
    assert config["max_batch_size"] >= 0
    assert config["model_transaction_policy"]["decoupled"] is False
    assert "statistics" in http.get_server_metadata()["extensions"]
    (stats,) = http.get_inference_statistics(MODEL)["model_stats"]
    for name in ("success", "queue", "compute_input", "compute_infer", "compute_output"):
        assert stats["inference_stats"][name].keys() == {"count", "ns"}
    wanted = grpc.get_model_config(MODEL).config
    assert not wanted.model_transaction_policy.decoupled
    assert not wanted.HasField("sequence_batching")
    assert not wanted.HasField("ensemble_scheduling")


def check_binary_is_the_default(*address):
    for module, client in both(address):
        result = client.infer(MODEL, [tensor(module, "x", X)], request_id="7", model_version="1")
        same(result, X)
        answer = result.get_response()
        assert (answer["id"] if module is by_http else answer.id) == "7"


def check_json_and_binary_in_every_pairing(*address):
    client = by_http.InferenceServerClient(address[0])
    for sent in (False, True):
        for wanted in (None, False, True):
            outputs = None if wanted is None else [by_http.InferRequestedOutput("x", binary_data=wanted)]
            same(client.infer(MODEL, [tensor(by_http, "x", X, binary_data=sent)], outputs=outputs), X)
    mixed = [tensor(by_http, "x", X, binary_data=True), tensor(by_http, "y", X * 2, binary_data=False)]
    result = client.infer(MODEL, mixed)
    same(result, X)
    same(result, X * 2, "y")


def check_every_datatype(*address):
    for module, client in both(address):
        for kind in TYPES.values():
            array = numpy.array([[0, 1], [1, 0]], kind)
            same(client.infer(MODEL, [tensor(module, "x", array)]), array)


def check_brain_floats(*address):
    """A script gets them as float32."""
    import ml_dtypes

    array = numpy.array([[1.5, -2.0]], numpy.float32)
    for module, client in both(address):
        sent = module.InferInput("x", [1, 2], "BF16")
        sent.set_data_from_numpy(array.astype(ml_dtypes.bfloat16))
        same(client.infer(MODEL, [sent]), array)


def check_bytes_that_are_no_text(*address):
    array = numpy.array([b"\xff\x00", b"", "é".encode()], object)
    for module, client in both(address):
        same(client.infer(MODEL, [tensor(module, "x", array)]), array)


def check_no_elements(*address):
    empty = numpy.zeros((0, 3), numpy.float32)
    for module, client in both(address):
        same(client.infer(MODEL, [tensor(module, "x", empty)]), empty)


def check_compression(*address):
    http, grpc = (client for _, client in both(address))
    large = numpy.zeros((200, 200), numpy.float32)
    for coding in ("gzip", "deflate"):
        for more in ({"request_compression_algorithm": coding}, {"response_compression_algorithm": coding}):
            same(http.infer(MODEL, [tensor(by_http, "x", large)], **more), large)
            same(http.infer(MODEL, [tensor(by_http, "x", large, binary_data=False)], **more), large)
        same(grpc.infer(MODEL, [tensor(by_grpc, "x", large)], compression_algorithm=coding), large)


def check_requests_made_and_answers_read_by_hand(*address):
    import urllib.request

    kind = by_http.InferenceServerClient
    body, length = kind.generate_request_body([tensor(by_http, "x", X)])
    request = urllib.request.Request(f"http://{address[0]}/v2/models/{MODEL}/infer", body, method="POST")
    request.add_header("Inference-Header-Content-Length", str(length))
    with urllib.request.urlopen(request) as answer:
        size = int(answer.headers["Inference-Header-Content-Length"])
        same(kind.parse_response_body(answer.read(), header_length=size), X)


def check_later_answers(*address):
    http = by_http.InferenceServerClient(address[0], concurrency=4)
    for waiting in [http.async_infer(MODEL, [tensor(by_http, "x", X)]) for _ in range(8)]:
        same(waiting.get_result(), X)
    done = queue.Queue()
    grpc = by_grpc.InferenceServerClient(address[1])
    for _ in range(8):
        grpc.async_infer(MODEL, [tensor(by_grpc, "x", X)], lambda result, error: done.put((result, error)))
    for _ in range(8):
        result, error = done.get(timeout=30)
        assert error is None, error
        same(result, X)


async def check_asyncio(*address):
    for module, kind, where in ((by_http, by_http_aio, address[0]), (by_grpc, by_grpc_aio, address[1])):
        async with kind.InferenceServerClient(where) as client:
            assert await client.is_server_ready()
            assert await client.get_model_config(MODEL)
            same(await client.infer(MODEL, [tensor(module, "x", X)]), X)


def check_a_stream(*address):
    done = queue.Queue()
    with by_grpc.InferenceServerClient(address[1]) as client:
        client.start_stream(lambda result, error: done.put((result, error)))
        for number in range(20):
            client.async_stream_infer(MODEL, [tensor(by_grpc, "x", X + number)], request_id=str(number))
        found = {}
        for _ in range(20):
            result, error = done.get(timeout=30)
            assert error is None, error
            found[int(result.get_response().id)] = result
        for number, result in found.items():
            same(result, X + number)
        client.async_stream_infer("other", [tensor(by_grpc, "x", X)])
        result, error = done.get(timeout=30)
        assert "there is no model 'other'" in str(error)
        client.stop_stream()


async def check_a_stream_by_asyncio(*address):
    async def requests():
        for number in range(5):
            yield {"model_name": MODEL, "inputs": [tensor(by_grpc, "x", X)], "request_id": str(number)}

    async with by_grpc_aio.InferenceServerClient(address[1]) as client:
        count = 0
        async for result, error in client.stream_infer(requests()):
            assert error is None
            same(result, X)
            count += 1
        assert count == 5


def check_errors_reach_the_caller_as_sentences(*address):
    for module, client in both(address):
        inputs, wanted = [tensor(module, "x", X)], [module.InferRequestedOutput("other")]
        report.fails("there is no model 'other'", client.infer, "other", inputs)
        report.fails("there is no output 'other'", client.infer, MODEL, inputs, outputs=wanted)
        report.fails("the script failed", client.infer, MODEL, [tensor(module, "fail", X)])
        report.fails("has no version '9'", client.get_model_metadata, MODEL, "9")
        report.fails("no shared memory of its clients", client.register_system_shared_memory, "a", "/a", 8)
        report.fails("see its flags", client.get_trace_settings)


def check_deadlines(*address):
    grpc = by_grpc.InferenceServerClient(address[1])
    slow = [tensor(by_grpc, "sleep", numpy.array([0.5], numpy.float32))]
    report.fails("DEADLINE_EXCEEDED", grpc.infer, MODEL, slow, client_timeout=0.1)


def check_parameters_and_headers(*address):
    for module, client in both(address):
        inputs = [tensor(module, "x", X)]
        same(client.infer(MODEL, inputs, parameters={"a": "b", "n": 1}, headers={"x-request-id": "abc"}), X)


def check_one_element_is_the_native_body(*address):
    body = numpy.array([b"[1, 2, 3]"], object)
    for module, client in both(address):
        found = client.infer(MODEL, [tensor(module, "any", body)]).as_numpy("output")
        assert found.tolist() == [b'{"kind":"list","size":3}'], found


if __name__ == "__main__":
    report.run(sys.modules["__main__"], *sys.argv[1:])
