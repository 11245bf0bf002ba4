"""Every call of gRPC, TorchServe's services among them, with keys of each right."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator

import grpc
import pytest

from panglot.dialects.torchserve.rpc import inference as torchserve
from panglot.dialects.torchserve.rpc import management
from panglot.web.access import key_file
from panglot.web.access.keys import RIGHT_FOR
from panglot.web.contract import CONTROL, INFER, PUBLIC
from panglot.web.grpc import methods, reflection
from panglot_worker.tensors import protobuf
from support.models import all_of
from support.rpc import SERVICE, address
from support.server import PACKAGES, Server, serving

WATCH = f"/{methods.HEALTH}/Watch"
NATIVE = {
    f"/{service.full_name}/{method.name}": method
    for service in (torchserve.SERVICE, management.SERVICE)
    for method in service.methods
}
STREAMS = {f"/{SERVICE}/ModelStreamInfer", WATCH, *reflection.METHODS}
STREAMS |= {name for name, method in NATIVE.items() if method.streams}
ACCESS = {
    **{name: method.access for name, method in methods.METHODS.items()},
    **dict.fromkeys((f"/{SERVICE}/ModelInfer", *reflection.METHODS, f"/{SERVICE}/ModelStreamInfer"), INFER),
    WATCH: PUBLIC,
    **{name: method.access for name, method in NATIVE.items()},
}
"""Who may make each call."""
ENTRIES = {
    **{right: (f'may = ["{right}"]',) for right in key_file.RIGHTS},
    "all": (f"may = {list(key_file.RIGHTS)}",),
    "expired": (f"may = {list(key_file.RIGHTS)}", "expires = 2020-01-01T00:00:00Z"),
    "other": (f"may = {list(key_file.RIGHTS)}", 'models = ["other", "gone"]'),
}
SECRETS = {name: key_file.new_secret() for name in ENTRIES}
NAMED = protobuf.text(1, "echo")
NAMES = {
    **dict.fromkeys((name for name in ACCESS if "/Model" in name and "Stream" not in name), NAMED),
    **dict.fromkeys((f"/{SERVICE}/RepositoryModel{what}" for what in ("Load", "Unload")), protobuf.text(2, "echo")),
    **{name: NAMED for name, method in NATIVE.items() if name.rpartition("/")[2] not in ("Ping", "ListModels")},
    **{name: protobuf.text(9, "echo") for name in NATIVE if name.endswith("/RegisterModel")},
}
"""A message that names a model, for the calls that are about one."""
TOLD = [name for name, method in NATIVE.items() if method.failure is not None]
"""Calls that tell of a failure in their answer."""
REFUSED = {grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("models")
    for name in ("echo", "other"):
        shutil.copytree(PACKAGES / "torchserve_echo", folder / name)
    file = folder.parent / "keys.toml"
    file.write_text("\n".join(key_file.written(name, SECRETS[name], ENTRIES[name]) for name in ENTRIES))
    flags = ("--keys", str(file), "--admin", "--grpc-port", "0")
    with serving(all_of(folder), *flags, ready=False) as running:
        # The end of `serving` looks at the metrics.
        running.token = SECRETS["all"]
        running.wait_ready()
        yield running


@pytest.fixture(scope="module")
def channel(server: Server) -> Iterator[grpc.Channel]:
    with contextlib.closing(grpc.insecure_channel(address(server))) as opened:
        yield opened


def code_of(channel: grpc.Channel, method: str, secret: str | None, message: bytes = b"") -> grpc.StatusCode:
    """How a call ends; of a stream, its first answer."""
    metadata = [("authorization", f"Bearer {secret}")] if secret is not None else None
    try:
        if method in STREAMS:
            answers = channel.stream_stream(method)(iter([message]), metadata=metadata, timeout=20)
            next(answers, None)
            answers.cancel()
        else:
            channel.unary_unary(method)(message, metadata=metadata, timeout=20)
    except grpc.RpcError as error:
        return error.code()
    return grpc.StatusCode.OK


@pytest.mark.parametrize("method", sorted(ACCESS))
def test_a_call_is_open_to_the_keys_that_have_its_right(method: str, channel: grpc.Channel) -> None:
    access = ACCESS[method]
    for name, secret in (("none", None), ("unknown", key_file.new_secret()), *SECRETS.items()):
        code = code_of(channel, method, secret)
        if access == PUBLIC or name in ("all", "other", RIGHT_FOR.get(access)):
            assert code not in REFUSED, (name, code)
        elif name in ("none", "unknown", "expired"):
            assert code == grpc.StatusCode.UNAUTHENTICATED, name
        else:
            assert code == grpc.StatusCode.PERMISSION_DENIED, name


@pytest.mark.parametrize("method", sorted(name for name in NAMES if ACCESS[name] != PUBLIC and name not in TOLD))
def test_a_key_for_some_of_the_models_reaches_no_other(method: str, channel: grpc.Channel) -> None:
    assert code_of(channel, method, SECRETS["other"], NAMES[method]) == grpc.StatusCode.PERMISSION_DENIED
    # "gone" is not there: what a key may unload is still there for the tests that follow.
    own = "gone" if ACCESS[method] == CONTROL else "other"
    to_own = NAMES[method].replace(b"\x04echo", protobuf.text(1, own)[1:])
    assert code_of(channel, method, SECRETS["other"], to_own) not in REFUSED


@pytest.mark.parametrize("method", TOLD)
def test_an_answer_may_tell_that_a_key_does_not_reach_the_model(method: str, channel: grpc.Channel) -> None:
    metadata = [("authorization", f"Bearer {SECRETS['other']}")]
    (answer,) = channel.stream_stream(method)(iter([NAMES[method]]), metadata=metadata, timeout=20)
    assert b"the key 'other' may not use model 'echo'" in answer
