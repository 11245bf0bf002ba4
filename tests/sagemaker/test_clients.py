"""The platform's own client: boto3's `invoke_endpoint`, by the address of a server."""

from __future__ import annotations

import json
import subprocess

import pytest

from support import originals
from support.server import serving

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
print(json.dumps([answer["ContentType"], said, echoed.get("CustomAttributes"), failed]))
"""


@pytest.mark.rest("installs boto3")
@pytest.mark.document("sagemaker.33")
def test_invoke_endpoint_of_boto3() -> None:
    python = originals.interpreter("boto3", "boto3==1.40.0")
    with serving("sagemaker_ops") as server:
        done = subprocess.run(
            [python, "-c", CLIENT, server.url], capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        kind, said, echoed, failed = json.loads(done.stdout)
    assert kind == "application/json"
    assert said["X-Amzn-SageMaker-Custom-Attributes"] == "c=1"
    assert said["X-Amzn-SageMaker-Inference-Id"] == "i-7"
    assert echoed == "trace=7"
    assert "500" in failed
