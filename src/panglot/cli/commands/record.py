"""`panglot record`."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from panglot.cli.durations import duration, size
from panglot.errors import StartError

if TYPE_CHECKING:
    from panglot.recording.recorder import Recorder
    from panglot.tools.record.proxy import Upstream


@click.command()
@click.option("--to", "url", required=True, metavar="URL", help="the service: http://, https:// or unix:PATH")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), metavar="FILE", help="the recording")
@click.option("--host", default="127.0.0.1", metavar="TEXT", help="the address to listen on [127.0.0.1]")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8090,
    metavar="N",
    help="port to listen on; 0 takes a free one [8090]",
)
@click.option(
    "--redact",
    multiple=True,
    metavar="NAME|PATH",
    help="do not write this header, or place in JSON: /user/name, /**/id",
)
@click.option("--every", type=click.IntRange(1), default=1, metavar="N", help="record one of N requests [1]")
@click.option("--per-second", type=click.FloatRange(0), default=0.0, metavar="R", help="record at most R per second")
@click.option("--only-failures", is_flag=True, help="record only requests that get status 400 and above, or no answer")
@click.option("--only-path", multiple=True, metavar="PATTERN", help="record these paths, such as '/v1/*'")
@click.option("--only-header", multiple=True, metavar="NAME[:PATTERN]", help="record requests with this header")
@click.option("--max-body", type=size(), default="16MiB", metavar="SIZE", help="longer bodies are left out [16MiB]")
@click.option(
    "--memory", type=size(1 << 16), default="256MiB", metavar="SIZE", help="memory for what is not on disk yet [256MiB]"
)
@click.option("--rotate-size", type=size(), default="0", metavar="SIZE", help="begin a new file at this size")
@click.option("--rotate-age", type=duration(0.0), default=0.0, metavar="TIME", help="begin a new file after this time")
@click.option(
    "--retain",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="delete all but the N newest of the older files [0: none]",
)
@click.option("--keep-host", is_flag=True, help="send the client's Host header, not the service's own")
@click.option("--ca", default="", metavar="FILE", help="certificates to trust, if the service uses its own")
@click.option(
    "--drain", type=duration(0.0), default=10.0, metavar="TIME", help="how long open requests may take at the end [10]"
)
def record(url: str, output: Path, host: str, port: int, **given: Any) -> None:
    """Pass every request on to a service, unchanged, and record requests and answers in FILE.

    Let clients use the address of this proxy instead of that of the service. Streams, credentials and redirects pass
    unchanged, but Authorization, cookies and keys are never written, and only you can read FILE. If the disk is full,
    recording ends and the proxy goes on. gRPC is passed on and not recorded. Ctrl-C ends the command.
    """
    from panglot.logs import lines
    from panglot.recording.recorder import Recorder
    from panglot.recording.sampling import SamplingRules, header_rule
    from panglot.recording.sink import RecorderOptions
    from panglot.tools.record.proxy import upstream

    lines.configure("human", "info")
    service = upstream(url, given["keep_host"], given["ca"])
    sampling = SamplingRules(
        given["every"],
        given["per_second"],
        given["only_failures"],
        given["only_path"],
        tuple(header_rule(text) for text in given["only_header"]),
    )
    options = RecorderOptions(
        output, str(service.address), sampling, given["redact"], given["max_body"], given["memory"],
        given["rotate_size"], given["rotate_age"], given["retain"],
    )  # fmt: skip
    recorder = Recorder(options, lambda text: click.echo(text, err=True))
    try:
        _run(service, recorder, host, port, given["drain"])
    except StartError:
        # The file is new and empty: the recorder has renamed an older recording of this name.
        recorder.close()
        output.unlink(missing_ok=True)
        raise
    recorder.close()
    click.echo(recorder.summary(), err=True)


def _run(service: Upstream, recorder: Recorder, host: str, port: int, drain: float) -> None:
    import uvloop

    from panglot.tools.record.proxy import Proxy

    async def run() -> None:
        proxy = Proxy(service, recorder)
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        where = f"http://{f'[{host}]' if ':' in host else host}:{await proxy.start(host, port)}"
        click.echo(
            f"listening on {where}, passing on to {service.address}, recording to {recorder.options.path}", err=True
        )
        await stop.wait()
        # A second signal ends the wait for open requests.
        stop.clear()
        ending = asyncio.ensure_future(proxy.stop(drain))
        again = asyncio.ensure_future(stop.wait())
        await asyncio.wait((ending, again), return_when=asyncio.FIRST_COMPLETED)
        again.cancel()
        if not ending.done():
            await proxy.stop(0.0)

    uvloop.run(run())
