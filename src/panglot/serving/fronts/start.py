"""`--fronts N`: the number of fronts, their parent, and the start of each front."""

from __future__ import annotations

import dataclasses
import logging
import os
import tempfile
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import uvloop

from panglot.errors import LoadError, StartError
from panglot.fronts import messages
from panglot.fronts.board import Board
from panglot.fronts.channel import Channel
from panglot.fronts.limits.shared_keys import SharedKeys
from panglot.fronts.member import Member
from panglot.fronts.parent import Parent
from panglot.jobs.storage.memory_folder import MemoryFolder
from panglot.logs import journal as journals
from panglot.logs import lines as logs
from panglot.logs.journal import Journal
from panglot.machine.front_count import automatic
from panglot.serving.fronts.models import catalog_of, plan_of_now
from panglot.serving.planning import ServingPlan
from panglot.serving.prepared import Prepared
from panglot.settings import Settings
from panglot.web.listeners import grpc_url, url
from panglot.web.listening import unix_socket
from panglot_worker.clipping import LONGEST_TRACEBACK, clipped

log = logging.getLogger("panglot")

RunFront = Callable[[Prepared, Journal, Member], Coroutine[Any, Any, None]]


def number_of_fronts(plan: ServingPlan) -> int:
    """The number of fronts for a plan. If it must be one although a setting asks for more, the log tells the reason."""
    fewest = min((model.settings.workers.for_fronts for model in plan.models), default=1)
    wanted = plan.settings.fronts or automatic(fewest)
    if wanted == 1:
        return 1
    if any(model.settings.inline for model in plan.models):
        log.warning("one front instead of %d: --inline runs the script in this process", wanted)
        return 1
    return wanted


def serve_by_several(prepared: Prepared, fronts: int, run: RunFront) -> None:
    """Serve by a parent and its fronts. Raises LoadError before the first ready, Unanswered when time runs out."""
    # Asked now: in a front, standard error is a pipe to the parent.
    settings, terminal = prepared.plan.settings, os.isatty(2)
    jobs_folder = None if settings.jobs else MemoryFolder()

    def become(index: int, board: Board, channel: Channel) -> int:
        member = Member(index, board, channel, catalog)
        member.jobs_folder = jobs_folder.path if jobs_folder is not None else None
        return _front(prepared, member, terminal, run)

    catalog = catalog_of(prepared.plan)
    board = Board(fronts, catalog.slots)
    if prepared.rules.keys is not None:
        board.keys = SharedKeys(fronts)
    parent = Parent(settings, board, prepared.sockets.all(), become, catalog)
    # Python looks for the folder when a process first needs it. Looked for here, it is the same for all fronts.
    tempfile.gettempdir()
    # To the end of the process: the error that ends the server must not wait for a reader of the log either.
    parent.relay.install()
    parent.relay.on_space = logs.missing_lines
    logs.configure(settings.log_format, settings.log_level)
    # Not before: a front that finds the folder of `--jobs` in use, say, ends the server, which then never listened.
    parent.on_accepting = partial(_say_listening, prepared, fronts)
    paths = [unix_socket.path_of(sock) for sock in prepared.sockets.all()]
    try:
        parent.run()
    finally:
        for path in paths:
            unix_socket.remove(path)
        if jobs_folder is not None:
            jobs_folder.remove()


def _say_listening(prepared: Prepared, fronts: int) -> None:
    tls = prepared.tls is not None
    own, *further = prepared.sockets.http
    if prepared.sockets.grpc is not None:
        log.info("listening on %s too, for gRPC", grpc_url(prepared.sockets.grpc, prepared.plan.settings))
    names = ", ".join(model.name for model in prepared.plan.models)
    log.info("listening on %s, loading %s, %d fronts", url(own, tls), names, fronts)
    for sock, purpose in zip(further, prepared.purposes, strict=True):
        log.info("listening on %s too, for %s", url(sock, tls), purpose)


def _front(prepared: Prepared, member: Member, terminal: bool, run: RunFront) -> int:
    """Be one front, in a process that was forked for it. Returns its exit code."""
    settings = prepared.plan.settings
    journal = journals.begin(settings.log_queue, terminal)
    journal.on_space = logs.missing_lines
    logs.configure(settings.log_format, settings.log_level)
    try:
        if prepared.rules.keys is not None and member.board.keys is not None:
            member.board.keys.join(prepared.rules.keys, member.index)
        own = prepared._replace(plan=_shared_out(plan_of_now(prepared.plan, member.catalog), member))
        uvloop.run(run(own, journal, member))
        return 0
    except StartError as error:
        # The parent logs it. Only the failure of the first front ends the server.
        traceback = clipped(error.traceback, LONGEST_TRACEBACK) if isinstance(error, LoadError) else ""
        member.tell_at_once(messages.Failed(error.problem, error.file, error.line, error.fix, traceback))
        return error.exit_code
    except BaseException:
        log.exception("front %d failed", member.index)
        return 1
    finally:
        journal.drain()


def _shared_out(plan: ServingPlan, member: Member) -> ServingPlan:
    """The plan of one front, with its share of fixed limits. Workers are shared out where they are started."""
    models = tuple(dataclasses.replace(model, settings=_share(model.settings, member)) for model in plan.models)
    return dataclasses.replace(plan, settings=_share(plan.settings, member), models=models)


def _share(settings: Settings, member: Member) -> Settings:
    def part(total: int) -> int:
        return max(1, total // member.count + (member.index < total % member.count))

    return dataclasses.replace(
        settings,
        max_connections=part(settings.max_connections),
        fetch_at_once=part(settings.fetch_at_once),
        record_memory=part(settings.record_memory),
    )
