"""What NVIDIA's client asks models of the Python backend. Runs in an environment of its own."""

import queue
import sys
from pathlib import Path

import numpy
import tritonclient.grpc as by_grpc
import tritonclient.http as by_http

sys.path.append(str(Path(__file__).parents[2] / "v2" / "clients"))
from report import fails


def inputs(module, **arrays):
    made = []
    for name, array in arrays.items():
        kind = {"float32": "FP32", "int32": "INT32", "object": "BYTES"}[array.dtype.name]
        made.append(module.InferInput(name, list(array.shape), kind))
        made[-1].set_data_from_numpy(array)
    return made


def both(http, grpc):
    return (by_http, by_http.InferenceServerClient(http)), (by_grpc, by_grpc.InferenceServerClient(grpc))


def told(module, result):
    """The parameters of a response."""
    response = result.get_response()
    if module is by_http:
        return response["parameters"]
    return {name: getattr(value, value.WhichOneof("parameter_choice")) for name, value in response.parameters.items()}


def add_sub(*where):
    """The sum and difference, in every way; errors of one request; and what the model is said to be."""
    rows = numpy.arange(8, dtype=numpy.float32).reshape(2, 4)
    for module, client in both(*where):
        result = client.infer("triton_add_sub", inputs(module, INPUT0=rows, INPUT1=rows), request_id="seven")
        assert (result.as_numpy("OUTPUT0") == 2 * rows).all()
        assert (result.as_numpy("OUTPUT1") == 0 * rows).all()
        assert told(module, result) == {"rows": 2, "last": True, "of": "é"}
        only = [module.InferRequestedOutput("OUTPUT1")]
        result = client.infer("triton_add_sub", inputs(module, INPUT0=rows, INPUT1=-rows), outputs=only)
        assert (result.as_numpy("OUTPUT1") == 2 * rows).all()
        assert result.as_numpy("OUTPUT0") is None
        fails("INPUT0 is beyond the limit", client.infer, "triton_add_sub",
                     inputs(module, INPUT0=rows + 2000, INPUT1=rows))  # fmt: skip
        fails("the input 'INPUT1' is missing", client.infer, "triton_add_sub", inputs(module, INPUT0=rows))
        wide = numpy.zeros((9, 4), numpy.float32)
        fails("max_batch_size 8", client.infer, "triton_add_sub", inputs(module, INPUT0=wide, INPUT1=wide))
        config = client.get_model_config("triton_add_sub")
        assert (config["max_batch_size"] if module is by_http else config.config.max_batch_size) == 8
        told_by_methods = {"sequence_id": 7, "sequence_start": True, "priority": 1, "timeout": 500}
        result = client.infer("triton_add_sub", inputs(module, INPUT0=rows, INPUT1=rows), parameters={"tell": True},
                              **told_by_methods)  # fmt: skip
        assert told(module, result)["of"] == "7 1 500 tell"
        parameters = {"fail": True}
        fails("the script failed on this request", client.infer, "triton_add_sub",
                     inputs(module, INPUT0=rows, INPUT1=rows), parameters=parameters)  # fmt: skip


def preprocessing(*where):
    """Bytes in, pixels out."""
    picture = Path(__file__).parents[3] / "examples" / "bare" / "seven.png"
    rows = numpy.array([[picture.read_bytes()], [picture.read_bytes()]], dtype=object)
    for module, client in both(*where):
        pixels = client.infer("triton_preprocessing", inputs(module, PICTURE=rows)).as_numpy("PIXELS")
        assert pixels.shape == (2, 3, 8, 8)
        assert 0 <= pixels.min() < pixels.max() <= 1
        bad = numpy.array([[b"no picture"]], dtype=object)
        fails("cannot identify image file", client.infer, "triton_preprocessing", inputs(module, PICTURE=bad))


def repeat(http, grpc):
    """Responses that a decoupled model sends, by a stream; without one the client is told of it."""
    client, answers = by_grpc.InferenceServerClient(grpc), queue.Queue()
    client.start_stream(callback=lambda result, error: answers.put((result, error)))

    def ask(how, *numbers, **more):
        values = inputs(by_grpc, IN=numpy.array(numbers, numpy.int32), HOW=numpy.array([how], object))
        client.async_stream_infer("triton_repeat", values, request_id="seven", **more)

    def answer():
        result, error = answers.get(timeout=30)
        assert error is None, error
        assert result.get_response().id == "seven"
        out = result.as_numpy("OUT")
        return None if out is None else out.item(), told(by_grpc, result)["triton_final_response"]

    for how in ("loop", "thread"):
        ask(how, 3, 1, 2)
        assert [answer() for _ in range(3)] == [(3, False), (1, False), (2, False)]
        ask(how, 3, 1, enable_empty_final_response=True)
        assert [answer() for _ in range(3)] == [(3, False), (1, False), (None, True)]
    ask("loop", enable_empty_final_response=True)
    assert answer() == (None, True)
    for more in ({}, {"enable_empty_final_response": True}):
        # A response that is said to be the last needs no other behind it.
        ask("last", 3, 1, **more)
        assert [answer() for _ in range(2)] == [(3, False), (1, True)]
    ask("error", 3)
    result, error = answers.get(timeout=30)
    assert "not these" in str(error), (result, error)
    client.stop_stream()
    assert answers.empty()
    asked = inputs(by_http, IN=numpy.array([3], numpy.int32), HOW=numpy.array([b"loop"], object))
    fails("ModelStreamInfer", by_http.InferenceServerClient(http).infer, "triton_repeat", asked)


{"add_sub": add_sub, "preprocessing": preprocessing, "repeat": repeat}[sys.argv[1]](*sys.argv[2:])
