"""Services and messages as descriptors, for clients that ask a server what it speaks (reflection).

Field numbers are facts of the protocols. Only what this server answers is described.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from panglot.web.contract import RpcService
from panglot.web.grpc.messages import number
from panglot_worker.tensors.protobuf import message, text

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
EMPTY = "google.protobuf.Empty"


class MethodTypes(NamedTuple):
    """What a method takes and gives, and whether the client and the server send any number of it."""

    takes: str
    gives: str
    client_streams: bool = False
    server_streams: bool = False


class ProtoFile(NamedTuple):
    """One file of descriptors."""

    name: str
    package: str
    messages: Mapping[str, tuple[str, ...]]
    """By type: its fields, as `RpcService.messages` has them."""
    services: Mapping[str, Mapping[str, MethodTypes]]
    """By service: its methods."""

    @property
    def symbols(self) -> set[str]:
        """All that it describes."""
        methods = {f"{service}.{method}" for service, methods in self.services.items() for method in methods}
        return {f"{self.package}.{symbol}" for symbol in (*self.messages, *self.services, *methods)}

    @property
    def imports(self) -> list[str]:
        """The files that its methods need besides."""
        types = {kind for methods in self.services.values() for method in methods.values() for kind in method[:2]}
        return [EMPTY_FILE.name] if EMPTY in types else []

    def descriptor(self) -> bytes:
        """The FileDescriptorProto."""
        parts = [text(1, self.name), text(2, self.package), *(text(3, name) for name in self.imports)]
        parts += [message(4, _message(self.package, kind, fields)) for kind, fields in self.messages.items()]
        parts += [message(6, _service(self.package, name, methods)) for name, methods in self.services.items()]
        return b"".join((*parts, text(12, "proto3")))


UNARY = (
    "ServerLive", "ServerReady", "ModelReady", "ServerMetadata", "ModelMetadata", "ModelInfer", "ModelConfig",
    "ModelStatistics", "RepositoryIndex", "RepositoryModelLoad", "RepositoryModelUnload",
)  # fmt: skip
EMPTY_FILE = ProtoFile("google/protobuf/empty.proto", "google.protobuf", {"Empty": ()}, {})
OURS = (
    ProtoFile("panglot/inference.proto", "inference", MESSAGES["inference"], {
        "GRPCInferenceService": {
            **{name: MethodTypes(f"{name}Request", f"{name}Response") for name in UNARY},
            "ModelStreamInfer": MethodTypes("ModelInferRequest", "ModelStreamInferResponse", True, True),
        },
    }),
    ProtoFile("panglot/health.proto", "grpc.health.v1", MESSAGES["grpc.health.v1"], {
        "Health": {
            "Check": MethodTypes("HealthCheckRequest", "HealthCheckResponse"),
            "Watch": MethodTypes("HealthCheckRequest", "HealthCheckResponse", server_streams=True),
        },
    }),
)  # fmt: skip
"""What every server describes."""


def files(services: Iterable[RpcService]) -> tuple[ProtoFile, ...]:
    """All files of a server whose dialects have these services."""
    own = [
        ProtoFile(
            f"panglot/{service.full_name}.proto", service.package, service.messages,
            {service.name: {
                method.name: MethodTypes(method.takes, method.gives, method.failure is not None, method.streams)
                for method in service.methods
            }},
        )
        for service in services
    ]  # fmt: skip
    return (*OURS, *own, *([EMPTY_FILE] if any(file.imports for file in own) else []))


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
            # Field 7 holds the options of the type: its field 7 says that this is the entry of a map.
            inner.append(message(3, text(1, entry) + pair + message(7, number(7, 1))))
            kind, words = f"{name}.{entry}", ["repeated"]
        parts.append(_field(title, int(at), kind, package, REPEATED if words[0] == "repeated" else OPTIONAL))
    return b"".join((*parts, *inner))


def _field(name: str, at: int, kind: str, package: str, label: int) -> bytes:
    scalar = TYPES.get(kind)
    about = text(1, name) + number(3, at) + number(4, label) + number(5, scalar or MESSAGE)
    return message(2, about if scalar else about + text(6, f".{package}.{kind}"))


def _service(package: str, name: str, methods: Mapping[str, MethodTypes]) -> bytes:
    return text(1, name) + b"".join(message(2, _method(package, method, types)) for method, types in methods.items())


def _method(package: str, name: str, types: MethodTypes) -> bytes:
    """The MethodDescriptorProto of a method."""
    takes, gives = (kind if "." in kind else f"{package}.{kind}" for kind in types[:2])
    streams = number(5, types.client_streams) + number(6, types.server_streams)
    return text(1, name) + text(2, f".{takes}") + text(3, f".{gives}") + streams
