"""The logger of scripts: `atserving`, to standard error, with the request a line belongs to."""

import logging
import sys

NAME = "atserving"
FORMAT = "%(asctime)s [%(reqid)s] %(levelname)s %(pathname)s:%(lineno)d: %(message)s"


class _WithRequest(logging.Filter):
    """Gives every record a `reqid`, with or without `extra`, so that the format holds for all."""

    def filter(self, record):
        """Let every record pass, with the id of its request."""
        if not hasattr(record, "reqid"):
            from evals.utils._context import CTX

            record.reqid = getattr(CTX, "reqID", "")
        if record.reqid in ("xx", ""):
            record.reqid = _running() or record.reqid
        return True


def _running():
    """The requests of the call in progress, where a server runs the script."""
    current = sys.modules.get("panglot_worker.scripts.current")
    return ",".join(info.id for info in current.requests()) if current else ""


def init_logger():
    """The logger of scripts, made at its first use."""
    script_logger = logging.getLogger(NAME)
    if not script_logger.handlers:
        script_logger.setLevel(logging.DEBUG)
        script_logger.propagate = False
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter(FORMAT))
        handler.addFilter(_WithRequest())
        script_logger.addHandler(handler)
    return script_logger


logger = init_logger()
