"""The protocol's services and messages as descriptors, for clients that ask a server what it speaks (reflection).

Field numbers are facts of the protocol. Only what this server answers is described.
"""

from __future__ import annotations

from panglot.web.grpc.messages import number
from panglot_worker.tensors.protobuf import message, text

FILES = {"panglot/inference.proto": "inference", "panglot/health.proto": "grpc.health.v1"}
PARAMETERS = "parameters 4 map InferParameter"
CONTENTS = "contents 5 InferTensorContents"
TYPES = {
    "double": 1,
    "float": 2,
    "int64": 3,
    "uint64": 4,
    "int32": 5,
    "bool": 8,
    "string": 9,
    "bytes": 12,
    "uint32": 13,
}
MESSAGE, OPTIONAL, REPEATED = 11, 1, 3

MESSAGES: dict[str, dict[str, tuple[str, ...]]] = {
    "inference": {
        "ServerLiveRequest": (), "ServerLiveResponse": ("live 1 bool",),
        "ServerReadyRequest": (), "ServerReadyResponse": ("ready 1 bool",),
        "ModelReadyRequest": ("name 1 string", "version 2 string"), "ModelReadyResponse": ("ready 1 bool",),
        "ServerMetadataRequest": (),
        "ServerMetadataResponse": ("name 1 string", "version 2 string", "extensions 3 repeated string"),
        "ModelMetadataRequest": ("name 1 string", "version 2 string"),
        "TensorMetadata": ("name 1 string", "datatype 2 string", "shape 3 repeated int64"),
        "ModelMetadataResponse": (
            "name 1 string", "versions 2 repeated string", "platform 3 string", "inputs 4 repeated TensorMetadata",
            "outputs 5 repeated TensorMetadata",
        ),
        "InferParameter": (
            "bool_param 1 bool", "int64_param 2 int64", "string_param 3 string", "double_param 4 double",
            "uint64_param 5 uint64",
        ),
        "InferTensorContents": (
            "bool_contents 1 repeated bool", "int_contents 2 repeated int32", "int64_contents 3 repeated int64",
            "uint_contents 4 repeated uint32", "uint64_contents 5 repeated uint64", "fp32_contents 6 repeated float",
            "fp64_contents 7 repeated double", "bytes_contents 8 repeated bytes",
        ),
        "InferInputTensor": (
            "name 1 string", "datatype 2 string", "shape 3 repeated int64", PARAMETERS, CONTENTS,
        ),
        "InferRequestedOutputTensor": ("name 1 string", "parameters 2 map InferParameter"),
        "InferOutputTensor": (
            "name 1 string", "datatype 2 string", "shape 3 repeated int64", PARAMETERS, CONTENTS,
        ),
        "ModelInferRequest": (
            "model_name 1 string", "model_version 2 string", "id 3 string", PARAMETERS,
            "inputs 5 repeated InferInputTensor", "outputs 6 repeated InferRequestedOutputTensor",
            "raw_input_contents 7 repeated bytes",
        ),
        "ModelInferResponse": (
            "model_name 1 string", "model_version 2 string", "id 3 string", PARAMETERS,
            "outputs 5 repeated InferOutputTensor", "raw_output_contents 6 repeated bytes",
        ),
        "ModelStreamInferResponse": ("error_message 1 string", "infer_response 2 ModelInferResponse"),
        "ModelConfigRequest": ("name 1 string", "version 2 string"),
        "ModelInput": ("name 1 string", "data_type 2 int32", "dims 4 repeated int64"),
        "ModelOutput": ("name 1 string", "data_type 2 int32", "dims 3 repeated int64"),
        "ModelTransactionPolicy": ("decoupled 1 bool",),
        "ModelDynamicBatching": (),
        "ModelConfig": (
            "name 1 string", "platform 2 string", "max_batch_size 4 int32", "input 5 repeated ModelInput",
            "output 6 repeated ModelOutput", "dynamic_batching 11 ModelDynamicBatching", "backend 17 string",
            "model_transaction_policy 19 ModelTransactionPolicy",
        ),
        "ModelConfigResponse": ("config 1 ModelConfig",),
        "ModelStatisticsRequest": ("name 1 string", "version 2 string"),
        "StatisticDuration": ("count 1 uint64", "ns 2 uint64"),
        "InferStatistics": tuple(
            f"{name} {at} StatisticDuration"
            for at, name in enumerate(
                ("success", "fail", "queue", "compute_input", "compute_infer", "compute_output", "cache_hit",
                 "cache_miss"), 1,
            )
        ),
        "InferBatchStatistics": (
            "batch_size 1 uint64", "compute_input 2 StatisticDuration", "compute_infer 3 StatisticDuration",
            "compute_output 4 StatisticDuration",
        ),
        "ModelStatistics": (
            "name 1 string", "version 2 string", "last_inference 3 uint64", "inference_count 4 uint64",
            "execution_count 5 uint64", "inference_stats 6 InferStatistics",
            "batch_stats 7 repeated InferBatchStatistics",
        ),
        "ModelStatisticsResponse": ("model_stats 1 repeated ModelStatistics",),
        "RepositoryIndexRequest": ("repository_name 1 string", "ready 2 bool"),
        "ModelIndex": ("name 1 string", "version 2 string", "state 3 string", "reason 4 string"),
        "RepositoryIndexResponse": ("models 1 repeated ModelIndex",),
        "RepositoryModelLoadRequest": ("repository_name 1 string", "model_name 2 string"),
        "RepositoryModelLoadResponse": (),
        "RepositoryModelUnloadRequest": ("repository_name 1 string", "model_name 2 string"),
        "RepositoryModelUnloadResponse": (),
    },
    "grpc.health.v1": {
        "HealthCheckRequest": ("service 1 string",), "HealthCheckResponse": ("status 1 int32",),
    },
}  # fmt: skip
CALLS: dict[str, dict[str, tuple[str, ...]]] = {
    "inference": {
        "GRPCInferenceService": (
            "ServerLive", "ServerReady", "ModelReady", "ServerMetadata", "ModelMetadata", "ModelInfer",
            "ModelStreamInfer", "ModelConfig", "ModelStatistics", "RepositoryIndex", "RepositoryModelLoad",
            "RepositoryModelUnload",
        ),
    },
    "grpc.health.v1": {"Health": ("Check", "Watch")},
}  # fmt: skip
SERVICES = tuple(f"{package}.{service}" for package, services in CALLS.items() for service in services)


def file_descriptor(name: str) -> bytes:
    """The FileDescriptorProto of one of FILES."""
    package = FILES[name]
    parts = [text(1, name), text(2, package)]
    parts += [message(4, _message(package, kind, fields)) for kind, fields in MESSAGES[package].items()]
    parts += [message(6, _service(package, service, calls)) for service, calls in CALLS[package].items()]
    return b"".join((*parts, text(12, "proto3")))


def file_of(symbol: str) -> str | None:
    """The file that describes a service, a call or a message; None where there is none."""
    for name, package in FILES.items():
        known = {*MESSAGES[package], *CALLS[package]}
        known |= {f"{service}.{call}" for service, calls in CALLS[package].items() for call in calls}
        if symbol.removeprefix(package + ".") in known and symbol.startswith(package + "."):
            return name
    return None


def _message(package: str, name: str, fields: tuple[str, ...]) -> bytes:
    """The DescriptorProto of a message; a map is a list of entries with a key and a value."""
    parts = [text(1, name)]
    inner = []
    for field in fields:
        title, at, *words = field.split()
        kind = words[-1]
        if words[0] == "map":
            entry = "".join(word.title() for word in title.split("_")) + "Entry"
            pair = _field("key", 1, "string", "", OPTIONAL) + _field("value", 2, kind, package, OPTIONAL)
            inner.append(message(3, text(1, entry) + pair + message(7, number(7, 1))))
            kind, words = f"{name}.{entry}", ["repeated"]
        parts.append(_field(title, int(at), kind, package, REPEATED if words[0] == "repeated" else OPTIONAL))
    return b"".join((*parts, *inner))


def _field(name: str, at: int, kind: str, package: str, label: int) -> bytes:
    scalar = TYPES.get(kind)
    about = text(1, name) + number(3, at) + number(4, label) + number(5, scalar or MESSAGE)
    return message(2, about if scalar else about + text(6, f".{package}.{kind}"))


def _service(package: str, name: str, calls: tuple[str, ...]) -> bytes:
    return text(1, name) + b"".join(message(2, _call(package, call)) for call in calls)


def _call(package: str, name: str) -> bytes:
    """The MethodDescriptorProto of a call."""
    if package != "inference":
        taken, given, streams = "HealthCheckRequest", "HealthCheckResponse", (False, name == "Watch")
    elif name == "ModelStreamInfer":
        taken, given, streams = "ModelInferRequest", "ModelStreamInferResponse", (True, True)
    else:
        taken, given, streams = f"{name}Request", f"{name}Response", (False, False)
    types = text(2, f".{package}.{taken}") + text(3, f".{package}.{given}")
    return text(1, name) + types + number(5, streams[0]) + number(6, streams[1])
