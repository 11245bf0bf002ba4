"""The platform's own clients: boto3 by the address of a server, and the predictor of the SDK's local mode."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import environments
from support.server import Server, serving

pytestmark = [pytest.mark.rest("installs the SDK of SageMaker"), pytest.mark.timeout(300)]
VERSIONS = (
    "sagemaker==2.245.0", "sagemaker-core==1.0.78", "boto3==1.44.0", "botocore==1.44.0", "s3transfer==0.19.3",
    "jmespath==1.1.0", "importlib-metadata==6.11.0", "zipp==4.1.2", "pandas==3.0.6", "smdebug-rulesconfig==1.0.1",
    "schema==0.7.8",
)  # fmt: skip
"""The SDK with what it imports for local mode and the tests' environment lacks: all of it takes minutes to install."""
CLIENT = """
import json, sys
import boto3, botocore
runtime = boto3.client(
    "sagemaker-runtime", endpoint_url=sys.argv[1], region_name="eu-west-1",
    aws_access_key_id="AKIA", aws_secret_access_key="secret",
)
def ask(**order):
    return runtime.invoke_endpoint(
        EndpointName="any-endpoint", ContentType="application/json", Accept="application/json",
        Body=json.dumps(order), CustomAttributes="c=1", InferenceId="i-7",
    )
answer = ask(op="headers")
said = json.loads(answer["Body"].read())
echoed = ask(op="answer headers")
try:
    ask(op="raise", text="no way")
except runtime.exceptions.ModelError as error:
    failed = str(error)
except botocore.exceptions.ClientError as error:
    failed = type(error).__name__ + " " + str(error)
later = runtime.invoke_endpoint_async(
    EndpointName="any-endpoint", ContentType="application/json", InputLocation=sys.argv[2], InferenceId="i-8"
)
print(json.dumps([
    answer["ContentType"], said, echoed.get("CustomAttributes"), failed, later["InferenceId"], later["OutputLocation"],
]))
"""


PREDICTOR = """
import json, sys
import boto3
from sagemaker.deserializers import JSONDeserializer
from sagemaker.local import LocalSession
from sagemaker.predictor import Predictor
from sagemaker.serializers import JSONSerializer
account = boto3.Session(region_name="eu-west-1", aws_access_key_id="AKIA", aws_secret_access_key="secret")
session = LocalSession(account)
session.config = {"local": {"serving_port": int(sys.argv[1])}}
session.sagemaker_runtime_client.config = session.config
predictor = Predictor(
    "any-endpoint", sagemaker_session=session, serializer=JSONSerializer(), deserializer=JSONDeserializer()
)
print(json.dumps(predictor.predict({"op": "sum", "values": [1, 2]})))
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("sagemaker_ops", "--url-allow", "127.0.0.1") as running:
        yield running


def answered(client: str, *arguments: str, **env: str) -> str:
    command = [sys.executable, "-W", "ignore", "-c", client, *arguments]
    variables = {**environments.over_ours("sagemaker-2.245.0", *VERSIONS), **env}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-1]


@pytest.mark.document("sagemaker.40")
def test_the_predictor_of_the_sdks_local_mode(server: Server, tmp_path: Path) -> None:
    # It asks Docker for its host, and takes this machine where Docker complains.
    docker = tmp_path / "docker"
    docker.write_text("#!/bin/sh\necho none >&2\n")
    docker.chmod(0o755)
    path = os.pathsep.join((str(tmp_path), os.environ["PATH"]))
    assert answered(PREDICTOR, str(server.port), PATH=path) == "12"


@pytest.mark.document("sagemaker.33", "sagemaker.34")
def test_invoke_endpoint_and_invoke_endpoint_async_of_boto3(server: Server) -> None:
    # An address that answers: what lies there is no order, which the job tells.
    answer = answered(CLIENT, server.url, server.url + "/ping")
    kind, said, echoed, failed, later, where = json.loads(answer)
    assert kind == "application/json"
    assert said["X-Amzn-SageMaker-Custom-Attributes"] == "c=1"
    assert said["X-Amzn-SageMaker-Inference-Id"] == "i-7"
    assert echoed == "trace=7"
    assert "500" in failed
    assert later == "i-8"
    server.client.get(where.removesuffix("/result"), headers={"Prefer": "wait=30"}, timeout=60)
    assert server.client.get(where).status_code == 500
