"""Runs the checks of a client in its own environment, and prints what came of each as JSON."""

import asyncio
import inspect
import json
import sys
import traceback


def run(checks, *arguments):
    """Run every function of a module whose name begins with `check_`."""
    found = {}
    for name, check in sorted(vars(checks).items()):
        if name.startswith("check_"):
            try:
                result = check(*arguments)
                if inspect.iscoroutine(result):
                    asyncio.run(result)
                found[name] = "passed"
            except Exception:
                found[name] = traceback.format_exc()
    json.dump(found, sys.stdout)


def fails(words, call, *arguments, **named):
    """See that a call raises an exception whose text has these words."""
    said = None
    try:
        call(*arguments, **named)
    except Exception as error:
        said = str(error)
    assert said is not None, "it did not fail"
    assert words in said, said
