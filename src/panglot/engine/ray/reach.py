"""Whether anybody listens at the address of a cluster, asked before Ray is: Ray itself would try for minutes."""

from __future__ import annotations

import asyncio
import os

from panglot.errors import StartError

HEAD = "is it the address of a head, HOST:6379, or of its client server, ray://HOST:10001?"
LONGEST = 5.0
"""Seconds that a connection to the head may take."""


def host_and_port(address: str) -> tuple[str, int] | None:
    """Where `HOST:PORT`, `[HOST]:PORT` or `ray://HOST:PORT` leads to; None where only Ray knows it, as for `auto`."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    return (host.strip("[]"), int(port)) if host and port.isdecimal() else None


async def check_reach(address: str) -> None:
    """Raise StartError where nobody listens at an address."""
    target = host_and_port(address)
    if target is None:
        return
    try:
        async with asyncio.timeout(LONGEST):
            _, writer = await asyncio.open_connection(*target)
    except TimeoutError:
        raise _nobody(address, f"no connection within {LONGEST:g} s") from None
    except OSError as error:
        # asyncio repeats the address; the system's words are enough. Errors of names have negative numbers.
        why = os.strerror(error.errno) if error.errno is not None and error.errno > 0 else error.strerror or str(error)
        raise _nobody(address, why.lower()) from None
    except OverflowError:
        raise StartError(f"--ray {address}: {target[1]} is no port", fix=HEAD) from None
    writer.close()


def _nobody(address: str, why: str) -> StartError:
    return StartError(f"--ray {address}: nothing answers there ({why})", fix=HEAD)
