"""What MLServer's types and converters ask, over REST and gRPC. Runs in an environment of its own."""

import json
import sys
import urllib.request

import grpc
import numpy
import report
from mlserver.codecs import NumpyCodec, StringCodec
from mlserver.grpc.converters import ModelInferRequestConverter, ModelInferResponseConverter
from mlserver.grpc.dataplane_pb2_grpc import GRPCInferenceServiceStub
from mlserver.types import InferenceRequest, InferenceResponse
from native_mlserver import check_rest_and_grpc_give_the_same  # noqa: F401

MODEL = "tensors"
X = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)


def request():
    return InferenceRequest(id="7", inputs=[NumpyCodec.encode_input("x", X), StringCodec.encode_input("s", ["é", "b"])])


def same(answer):
    assert answer.id == "7"
    assert answer.model_name == MODEL
    found = {output.name: output for output in answer.outputs}
    assert (NumpyCodec.decode_output(found["x"]) == X).all()
    assert StringCodec.decode_output(found["s"]) == ["é", "b"]


def check_rest(http, _, plan):
    body = json.dumps(request().model_dump(exclude_none=True, mode="json")).encode()
    asked = urllib.request.Request(f"http://{http}/v2/models/{MODEL}/infer", body, {"content-type": "application/json"})
    with urllib.request.urlopen(asked) as answer:
        same(InferenceResponse.model_validate_json(answer.read()))


def check_grpc(_, address, plan):
    stub = GRPCInferenceServiceStub(grpc.insecure_channel(address))
    for raw in (False, True):
        message = ModelInferRequestConverter.from_types(request(), model_name=MODEL, use_raw=raw)
        same(ModelInferResponseConverter.to_types(stub.ModelInfer(message)))


if __name__ == "__main__":
    report.run(sys.modules["__main__"], *sys.argv[1:])
