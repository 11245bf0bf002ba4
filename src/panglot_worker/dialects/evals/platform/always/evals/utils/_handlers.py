"""The decorators of a script's functions: what they catch, and what they add."""

import functools
import sys

from evals.utils._context import CTX
from evals.utils.logger import logger

FAILED = 599


class Caught(str):
    """The message of a call that raised; `error` is what it raised, for a message that names the line."""

    error = None


def _caught(error):
    try:
        message = Caught(error)
    except Exception:
        # An exception may fail even at saying what it is.
        message = Caught(type(error).__name__)
    message.error = error
    if "panglot_worker" not in sys.modules:
        # A server tells it with the request it belongs to.
        logger.error("%s: %s", type(error).__name__, error, exc_info=sys.exc_info(), extra={"reqid": CTX.reqID})
    return message


def _enter(reqid):
    CTX.reqID = reqid
    CTX.logger = logger


def create_net_handler(function):
    """Mark the function that makes the net. What it raises becomes code 599 and a message."""

    @functools.wraps(function)
    def create_net(configs):
        _enter("net_init")
        try:
            CTX.app = configs.get("app", "")
            model, code, message = function(configs)
        except BaseException as error:
            return {}, FAILED, _caught(error)
        return model, code, message

    create_net.evals_handler = "create_net"
    return create_net


def net_preprocess_handler(function):
    """Mark the function that prepares one request. What it raises becomes code 599 and a message."""

    @functools.wraps(function)
    def net_preprocess(model, req, reqid=""):
        _enter(reqid)
        try:
            req, code, message = function(model, req)
        except BaseException as error:
            return req, FAILED, _caught(error)
        return req, code, message

    net_preprocess.evals_handler = "net_preprocess"
    return net_preprocess


def net_inference_handler(function):
    """Mark the function that answers requests. What it raises becomes code 599 and a message."""

    @functools.wraps(function)
    def net_inference(model, reqs, reqid=""):
        _enter(reqid)
        try:
            returned = function(model, reqs)
            if len(returned) == 2 and _has_net_init(function.__globals__):
                # The generation before: results and an error text.
                return returned
            rets, code, message = returned
            if isinstance(rets, list):
                _add_header(rets)
        except BaseException as error:
            return [], FAILED, _caught(error)
        return rets, code, message

    net_inference.evals_handler = "net_inference"
    return net_inference


def _has_net_init(names):
    """Whether a script is of the generation before: it starts with `net_init`, or has that function's decorator."""
    return "net_init" in names or any(getattr(value, "evals_handler", "") == "net_init" for value in names.values())


def _add_header(rets):
    header = "%s:1" % str(getattr(CTX, "app", "")).upper()
    for ret in rets:
        if isinstance(ret, dict):
            ret["header"] = {"X-Origin-A": [header]}


def net_init_handler(function):
    """Mark the function that makes the net in the generation before: it gives the model and an error text."""

    @functools.wraps(function)
    def net_init(configs):
        _enter("net_init")
        try:
            CTX.app = configs.get("app", "")
            model, message = function(configs)
        except BaseException as error:
            return {}, _caught(error)
        return model, message

    net_init.evals_handler = "net_init"
    return net_init
