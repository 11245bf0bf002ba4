"""TorchServe's gRPC management service: `org.pytorch.serve.grpc.management.ManagementAPIsService`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

from panglot.dialects.torchserve import management
from panglot.dialects.torchserve.management import Function
from panglot.dialects.torchserve.rpc.inference import ARCHIVE, STATUSES, unknown_model
from panglot.engine.call import Fault
from panglot.web.contract import ADMIN, CONTROL, RpcMethod, RpcService
from panglot.web.models import ModelAdministration
from panglot_worker.tensors import protobuf

NAMED = ("model_name 1 string", "model_version 2 string")
MESSAGES = {
    "DescribeModelRequest": (*NAMED, "customized 3 bool"),
    "ListModelsRequest": ("limit 1 int32", "next_page_token 2 int32"),
    "RegisterModelRequest": (
        "batch_size 1 int32", "handler 2 string", "initial_workers 3 int32", "max_batch_delay 4 int32",
        "model_name 5 string", "response_timeout 6 int32", "runtime 7 string", "synchronous 8 bool", "url 9 string",
        "s3_sse_kms 10 bool", "startup_timeout 11 int32",
    ),
    "ScaleWorkerRequest": (
        *NAMED, "max_worker 3 int32", "min_worker 4 int32", "number_gpu 5 int32", "synchronous 6 bool",
        "timeout 7 int32",
    ),
    "SetDefaultRequest": NAMED,
    "UnregisterModelRequest": NAMED,
    "ManagementResponse": ("msg 1 string",),
}  # fmt: skip
NOT_FOUND, PERMISSION_DENIED = 5, 7
HTTP = "org.pytorch.serve.http."
MOST_FIELDS = 64


def error(fault: Fault) -> tuple[int, str]:
    """The status and the sentence, with the class of the original's exception in a second line."""
    if fault.code in ("no_model", "no_version"):
        return NOT_FOUND, unknown_model(fault)
    if fault.code == "no_admin":
        return PERMISSION_DENIED, f"Model API disabled\n{ARCHIVE}ModelException"
    kind = {400: "BadRequestException", 409: "ConflictStatusException"}.get(fault.status, "InternalServerException")
    return STATUSES.get(fault.status, 13), f"{fault.message}\n{HTTP}{kind}"


def parameters(message: bytes, fields: tuple[str, ...]) -> dict[str, str]:
    """The fields of a message by name, as texts. Fields that are not set are left out. Raises ValueError."""
    return dict(_texts(message, {int(number): (name, kind) for name, number, kind in map(str.split, fields)}))


def _texts(message: bytes, fields: dict[int, tuple[str, str]]) -> Iterator[tuple[str, str]]:
    try:
        for count, (number, wire_type, content) in enumerate(protobuf.fields(memoryview(message))):
            # A field of a newer client has no name here, and is skipped: protocol buffers demand it of readers.
            name, kind = fields.get(number, ("", ""))
            if count >= MOST_FIELDS:
                raise ValueError("the message has too many fields")
            if kind == "string" and wire_type == protobuf.LENGTH:
                yield name, str(content, "utf-8")
            elif kind == "bool" and wire_type == protobuf.VARINT:
                yield name, str(bool(content)).lower()
            elif kind == "int32" and wire_type == protobuf.VARINT:
                yield name, str(protobuf.signed(content))
    except IndexError as broken:
        raise ValueError("the message cannot be read") from broken


def over_grpc(function: Function, kind: str) -> Callable[[ModelAdministration, bytes], Awaitable[bytes]]:
    """A function of the API as a method that takes messages of a kind."""

    async def answer(administration: ModelAdministration, message: bytes) -> bytes:
        said = await function(administration, parameters(message, MESSAGES[kind]))
        return protobuf.text(1, said.text)

    return answer


def _method(name: str, function: Function, access: str) -> RpcMethod:
    takes = f"{name}Request"
    return RpcMethod(name, takes, "ManagementResponse", access=access, administer=over_grpc(function, takes))


SERVICE = RpcService(
    package="org.pytorch.serve.grpc.management",
    name="ManagementAPIsService",
    methods=(
        _method("DescribeModel", management.describing, ADMIN),
        _method("ListModels", management.listing, ADMIN),
        _method("RegisterModel", management.register, CONTROL),
        _method("ScaleWorker", management.scale, CONTROL),
        _method("SetDefault", management.set_default, CONTROL),
        _method("UnregisterModel", management.unregister, CONTROL),
    ),
    messages=MESSAGES,
    error=error,
)
