"""mlflow's own client, against a server that needs a token."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from support import mlflow
from support.server import Server

pytestmark = [pytest.mark.rest("mlflow's client in an environment of its own"), pytest.mark.timeout(400)]
TOKEN = "a-token-of-the-client"
CLIENT = """
import json
import sys

import numpy
import pandas
import requests
from mlflow.pyfunc.scoring_server import client

port, token = sys.argv[1:]
if token:
    # The client has no parameter for headers; it calls requests, whose sessions have some for every request.
    headers = requests.sessions.default_headers
    requests.sessions.default_headers = lambda: {**headers(), "Authorization": "Bearer " + token}
scoring = client.ScoringServerClient("127.0.0.1", int(port))
scoring.wait_server_ready(30)
said = {"version": scoring.get_version()}
frame = pandas.DataFrame({"x": [1.0, 2.0], "y": [2.0, 3.0]})
holes = pandas.DataFrame({"x": [1.0, float("nan")], "y": [1.0, 1.0]})
try:
    said["frame"] = scoring.invoke(frame, params={"t": 1.0}).get_predictions().to_dict("records")
    said["holes"] = len(scoring.invoke(holes).get_predictions())
    scoring.invoke(numpy.ones((1, 2)))
except Exception as error:
    said["error"] = str(error)
print(json.dumps(said))
"""
DATABRICKS = """
import json
import sys

from mlflow.deployments import get_deploy_client

client = get_deploy_client("databricks")
print(json.dumps(client.predict(endpoint=sys.argv[1], inputs=json.loads(sys.argv[2]))))
"""


def run(script: str, *arguments: str, **variables: str) -> Any:
    environment = {**os.environ, **variables}
    done = subprocess.run(
        [mlflow.python(), "-c", script, *arguments], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with mlflow.ours("mlflow_signature", env={"PANGLOT_TOKEN": TOKEN}) as server:
        yield server


@pytest.mark.document("mlflow.18")
def test_the_scoring_client_with_a_token(server: Server) -> None:
    said = run(CLIENT, str(server.port), TOKEN)
    assert said["version"] == mlflow.VERSION
    assert said["frame"] == [{"0": 6.0}, {"0": 10.0}]
    assert said["holes"] == 2
    assert "Model is missing inputs" in said["error"]


def test_the_scoring_client_without_it(server: Server) -> None:
    said = run(CLIENT, str(server.port), "")
    assert said["version"] == mlflow.VERSION
    assert "UNAUTHENTICATED" in said["error"]


@pytest.mark.document("mlflow.18")
def test_the_client_of_databricks_with_a_token(server: Server) -> None:
    request = {"dataframe_split": {"columns": ["x", "y"], "data": [[1, 2]]}}
    variables = {"DATABRICKS_HOST": server.url, "DATABRICKS_TOKEN": TOKEN}
    said = run(DATABRICKS, "mlflow_signature", json.dumps(request), **variables)
    assert said["predictions"] == [3.0]
