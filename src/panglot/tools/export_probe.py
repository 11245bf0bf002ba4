"""Load an exported model and run one random input through it.

The text of this file is run by `python -c` in the package's interpreter: CPython 3.8 or newer, with the framework that
made the model. Its argument and its answer are JSON.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from typing import Any

TELL_TALE = "PANGLOT-MODEL "
UNKNOWN = {2: 16, 3: 16, 4: 224}
"""The length for an open dimension, by the number of dimensions. The first dimension, the batch, gets 1."""


class MissingFramework(Exception):
    """The interpreter has nothing to run the model with."""


def main() -> None:
    """Load and run the model that the first argument describes, and print the result."""
    wanted = json.loads(sys.argv[1])
    try:
        load_and_run = {"paddle": paddle, "onnx": onnx, "megengine": megengine}[wanted["kind"]]
        answer = load_and_run(wanted["file"], wanted["weights"])
    except MissingFramework as error:
        answer = {"error": str(error)}
    except Exception as error:  # noqa: BLE001  frameworks raise anything, and the answer says what
        answer = {"error": f"it does not load or run: {type(error).__name__}: {str(error).strip()[-400:]}"}
    # Behind a line break: a framework may have begun a line.
    print("\n" + TELL_TALE + json.dumps(answer), flush=True)


def paddle(file: str, weights: str) -> dict[str, Any]:
    """Load and run a model of Paddle."""
    inference = importlib.import_module("paddle.inference")
    began = time.perf_counter()
    config = inference.Config(file, weights)
    config.disable_gpu()
    config.disable_glog_info()
    predictor = inference.create_predictor(config)
    loaded = time.perf_counter()
    shapes = described(file)
    inputs = []
    for index, name in enumerate(predictor.get_input_names()):
        handle = predictor.get_input_handle(name)
        dtype = str(handle.type()).rpartition(".")[2].lower()
        declared = shapes[index] if index < len(shapes) else [-1, 3, 224, 224]
        shape = filled(declared)
        handle.reshape(shape)
        handle.copy_from_cpu(random(shape, dtype))
        inputs.append({"name": name, "dtype": dtype, "declared": declared, "shape": shape})
    predictor.run()
    names = predictor.get_output_names()
    outputs = [summary(name, predictor.get_output_handle(name).copy_to_cpu()) for name in names]
    return judged(inputs, outputs, loaded - began, time.perf_counter() - loaded)


def described(file: str) -> list[Any]:
    """The shapes of the inputs as they were exported, -1 for open lengths; nothing when the model does not say."""
    try:
        layer = importlib.import_module("paddle").jit.load(file.rpartition(".")[0])
        return [[-1 if length is None else int(length) for length in spec.shape] for spec in layer._input_spec()]
    except Exception:  # noqa: BLE001  frameworks raise anything, and the shapes are only shown
        return []


def onnx(file: str, weights: str) -> dict[str, Any]:
    """Load and run a model in ONNX."""
    runtime = importlib.import_module("onnxruntime")
    began = time.perf_counter()
    session = runtime.InferenceSession(file, providers=["CPUExecutionProvider"])
    loaded = time.perf_counter()
    inputs, feed = [], {}
    for entry in session.get_inputs():
        declared = [length if isinstance(length, int) else -1 for length in entry.shape]
        dtype = entry.type[len("tensor(") : -1].replace("float", "float32").replace("float3216", "float16")
        feed[entry.name] = random(filled(declared), dtype)
        inputs.append({"name": entry.name, "dtype": dtype, "declared": declared, "shape": filled(declared)})
    names = [entry.name for entry in session.get_outputs()]
    results = session.run(names, feed)
    outputs = [summary(name, result) for name, result in zip(names, results)]  # noqa: B905  CPython 3.8
    return judged(inputs, outputs, loaded - began, time.perf_counter() - loaded)


def megengine(file: str, weights: str) -> dict[str, Any]:
    """Load and run a model of MegEngine."""
    try:
        lite = importlib.import_module("megenginelite")
    except ModuleNotFoundError:
        raise MissingFramework(
            f"{sys.executable} has no MegEngine to run the model with; name an interpreter that has it with --python"
        ) from None
    began = time.perf_counter()
    network = lite.LiteNetwork()
    try:
        network.load(file)
    except RuntimeError as error:
        # The rest of the message is a backtrace of the library.
        raise RuntimeError(str(error).partition("\n")[0]) from None
    loaded = time.perf_counter()
    inputs = []
    for name in network.get_all_input_name():
        tensor = network.get_io_tensor(name)
        shape = [int(length) for length in tensor.layout.shapes[: tensor.layout.ndim]]
        dtype = importlib.import_module("numpy").dtype(tensor.layout.dtype).name
        tensor.set_data_by_copy(random(shape, dtype))
        inputs.append({"name": name, "dtype": dtype, "declared": shape, "shape": shape})
    network.forward()
    network.wait()
    outputs = [summary(name, network.get_io_tensor(name).to_numpy()) for name in network.get_all_output_name()]
    return judged(inputs, outputs, loaded - began, time.perf_counter() - loaded)


def filled(declared: list[int]) -> list[int]:
    unknown = UNKNOWN.get(len(declared), 16)
    return [length if length > 0 else 1 if index == 0 else unknown for index, length in enumerate(declared)]


def random(shape: list[int], dtype: str) -> Any:
    numpy = importlib.import_module("numpy")
    source = numpy.random.default_rng(0)
    if dtype.startswith("float"):
        return source.random(shape, dtype="float32").astype(dtype)
    return source.integers(0, 2, shape).astype(dtype)


def summary(name: str, value: Any) -> dict[str, Any]:
    numpy = importlib.import_module("numpy")
    array = numpy.asarray(value)
    finite = bool(numpy.isfinite(array).all()) if array.dtype.kind == "f" else True
    return {"name": name, "dtype": str(array.dtype), "shape": list(array.shape), "finite": finite}


def judged(inputs: Any, outputs: Any, load_seconds: float, run_seconds: float) -> dict[str, Any]:
    answer = {"inputs": inputs, "outputs": outputs, "load_seconds": load_seconds, "run_seconds": run_seconds}
    wild = [entry["name"] for entry in outputs if not entry["finite"]]
    if wild:
        answer["error"] = f"the output {wild[0]} holds NaN or infinity for a random input"
    return answer


if __name__ == "__main__":
    main()
