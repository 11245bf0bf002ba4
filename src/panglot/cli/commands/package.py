"""`panglot package`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from panglot.cli.options import TakesInputs
from panglot.terminal.text import visible


@click.command(cls=TakesInputs)
@click.argument("path")
@click.option("--output", default="", metavar="DIR", help="where to write; default: deploy in the package's folder")
@click.option("--base-image", default="", metavar="IMAGE", help="image with Python 3.11 or newer [python:3.11-slim]")
@click.option("--entrypoint", default="", metavar="COMMAND", help="what the container runs [panglot serve /package]")
@click.option("--port", type=click.IntRange(1, 65535), metavar="N", help="port to listen on [panglot.toml's, or 8080]")
@click.option("--name", default="", metavar="NAME", help="name of image, service and Deployment [the package's]")
@click.option("--requirements", default="", metavar="FILE", help="what to install [requirements.txt of the package]")
@click.option("--kubernetes", is_flag=True, help="also Deployment, Service and autoscaler, for KEDA and Prometheus too")
@click.option("--kserve", is_flag=True, help="also a ServingRuntime and an InferenceService")
@click.option("--kuberay", is_flag=True, help="also a RayCluster for the workers and a Deployment of the server")
@click.option("--monitoring", is_flag=True, help="also alert rules for Prometheus and a dashboard for Grafana")
@click.option("--dialect", default="", metavar="NAME", help="the package's dialect, if Panglot should not detect it")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
def package(path: str, dialect: str, port: int | None, as_json: bool, **given: Any) -> None:
    """Write a Dockerfile for the package and this version of Panglot, a compose file, and what the options ask for."""
    from panglot import dialects
    from panglot.errors import near
    from panglot.tools.package import container

    recognised = dialects.discover(Path(path), dialect)
    # The variables of this machine are not those of the container.
    settings = dialects.resolve(recognised, {}, {}).settings
    wanted = tuple(name for name in container.ON_REQUEST if given.pop(name))
    choices = container.Choices(path, dialect, port=port or 0, wanted=wanted, **given)
    written = container.write(recognised, settings, choices)
    shown = {near(str(file)): about for file, about in written.files.items()}
    start = f"docker run --init -p {written.port}:{written.port} -e PANGLOT_TOKEN=... {written.name}"
    if as_json:
        value = {"files": shown, "notes": list(written.notes), "build": written.build, "run": start}
        click.echo(json.dumps(value, indent=2))
        return
    for name, about in shown.items():
        click.echo(f"  {visible(name):{max(map(len, shown))}}  {visible(about)}")
    for note in written.notes:
        click.echo(f"note: {visible(note)}")
    click.echo("\nBuild the image, then run it with a token of your choice:")
    click.echo(f"  {visible(written.build)}")
    click.echo(f"  {visible(start)}")
