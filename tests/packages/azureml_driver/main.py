"""A script that Azure's designer puts before the user's: its init() does more, its run() only hands on."""

import importlib

driver_module = importlib.import_module("user_score")
calls = []


def init():
    calls.append("driver")
    driver_module.init(calls)


def run(http_body, request_headers):
    # azureml: the arguments of the user's run() are not those of this one.
    raise AssertionError("the driver's run() is not called")
