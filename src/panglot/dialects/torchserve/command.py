"""`panglot torchserve`: instead of `torchserve --start`, with its options."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any

import click

from panglot.cli.options import Grouped, parse_flags, setting_options
from panglot.dialects.torchserve import properties
from panglot.dialects.torchserve.properties import Properties
from panglot.errors import StartError
from panglot.serving.planning import Planner

OWN = ("dialect", "models", "ts_config")
"""Settings that the platform's options stand for."""
ARCHIVES = (".mar", ".tar.gz", ".tgz")
NO_EFFECT = (
    "start", "foreground", "no_config_snapshots", "enable_model_api", "disable_token_auth", "log_config",
    "workflow_store", "plugins_path",
)  # fmt: skip


@click.command(cls=Grouped)
@click.option("--model-store", metavar="DIR", help="folder of the archives")
@click.option("--models", "named", metavar="NAME=FILE...", multiple=True, help="archives to serve, or all [none]")
@click.option("--ts-config", metavar="FILE", help="a config.properties")
@click.option("--start", is_flag=True, help="has no effect here")
@click.option("--foreground", is_flag=True, help="has no effect here: the server stays in the foreground")
@click.option("--no-config-snapshots", "--ncs", is_flag=True, help="has no effect here")
@click.option("--enable-model-api", is_flag=True, help="has no effect here: --admin allows it")
@click.option("--disable-token-auth", is_flag=True, help="has no effect here: without PANGLOT_TOKEN there is none")
@click.option("--log-config", metavar="FILE", help="has no effect here: there is no Log4j")
@click.option("--workflow-store", metavar="DIR", help="has no effect here: workflows are not served")
@click.option("--plugins-path", "--ppath", metavar="DIR", help="has no effect here: there is no Java")
@click.option("--stop", is_flag=True, help="is refused: the server is in the foreground, and ends with Ctrl-C")
@click.argument("further", nargs=-1, metavar="[NAME=FILE...]")
@functools.partial(setting_options, without=OWN)
def torchserve(
    model_store: str | None, named: tuple[str, ...], ts_config: str | None, further: tuple[str, ...], **given: Any
) -> None:
    """Serve archives as `torchserve --start --model-store DIR --models NAME=FILE` does.

    Takes the other options of `panglot serve` too. Stop it with Ctrl-C or SIGTERM.
    """
    for name in NO_EFFECT:
        given.pop(name, None)
    if given.pop("stop", False):
        fix = "Ctrl-C where it runs, or SIGTERM to its process"
        raise StartError("this server runs in the foreground, so there is none to stop", fix=fix)
    file = ts_config or os.environ.get("TS_CONFIG_FILE", "")
    server = properties.read(Path(file), os.environ) if file else Properties()
    store = model_store or server.text("model_store")
    if not store:
        raise StartError("there is no model store", fix="--model-store DIR, or model_store in config.properties")
    if not Path(store).is_dir():
        raise StartError(f"the model store {store} is no folder", fix="--model-store DIR")
    words = [*named, *further] or [word for word in server.text("load_models").split(",") if word.strip()]
    flags = parse_flags(given) | _address(server, given)
    if file:
        flags["ts_config"] = file
    planner = Planner({**flags, "dialect": "torchserve", "models": store}, os.environ)
    plan = planner.server_plan(_paths(Path(store), words), whole_folder=False)
    from panglot.serving.server import serve

    serve(plan)


def _address(server: Properties, given: dict[str, Any]) -> dict[str, Any]:
    """The address of config.properties, unless a flag gives one. An address for other machines needs a token."""
    chosen: dict[str, Any] = {}
    if server.text("inference_address"):
        if given.get("port") is None:
            chosen["port"] = server.port("inference_address")
        host = server.host("inference_address")
        if given.get("host") is None and host:
            chosen["host"] = host
    return chosen


def _paths(store: Path, words: list[str]) -> list[str]:
    """The models as `panglot serve` takes them. Raises StartError for a file that is not in the store."""
    if words in (["all"], ["ALL"]):
        words = sorted(file.name for file in store.iterdir() if file.name.endswith(ARCHIVES) or _is_unpacked(file))
    paths = []
    for word in words:
        name, equals, file = word.strip().partition("=")
        path = store / (file if equals else name)
        if not path.exists():
            raise StartError(f"{path.name} is not in the model store {store}", fix="copy the archive there")
        paths.append(f"{name}={path}" if equals else str(path))
    if not paths:
        raise StartError("no model is named", fix="--models NAME=FILE, or --models all")
    return paths


def _is_unpacked(path: Path) -> bool:
    return (path / "MAR-INF" / "MANIFEST.json").is_file()


COMMAND = torchserve
