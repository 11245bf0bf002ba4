"""The same as `native`, by MLServer's types and converters: pictures are base64 for it."""

import json
import urllib.request

import grpc
import numpy
from mlserver.codecs import Base64Codec, NumpyCodec
from mlserver.grpc.converters import ModelInferRequestConverter, ModelInferResponseConverter
from mlserver.grpc.dataplane_pb2_grpc import GRPCInferenceServiceStub
from mlserver.types import InferenceRequest, InferenceResponse


def request(tensor, file, use_bytes):
    if not file:
        return InferenceRequest(
            inputs=[NumpyCodec.encode_input(tensor, numpy.random.default_rng(5).random((2, 64), numpy.float32))]
        )
    with open(file, "rb") as opened:
        return InferenceRequest(inputs=[Base64Codec.encode_input(tensor, [opened.read()], use_bytes=use_bytes)])


def values(answer):
    """Outputs by name; texts as bytes, wherever they came from."""
    elements = {output.name: list(output.data) for output in answer.outputs}
    return {
        name: [value.encode() if isinstance(value, str) else value for value in listed]
        for name, listed in elements.items()
    }


def check_rest_and_grpc_give_the_same(http, address, plan):
    stub = GRPCInferenceServiceStub(grpc.insecure_channel(address))
    for model, tensor, file in json.loads(plan):
        body = json.dumps(request(tensor, file, use_bytes=False).model_dump(mode="json")).encode()
        url = f"http://{http}/v2/models/{model}/infer"
        with urllib.request.urlopen(urllib.request.Request(url, body, {"content-type": "application/json"})) as answer:
            first = InferenceResponse.model_validate_json(answer.read())
        message = ModelInferRequestConverter.from_types(request(tensor, file, use_bytes=True), model_name=model)
        second = ModelInferResponseConverter.to_types(stub.ModelInfer(message))
        assert first.model_name == second.model_name == model
        assert values(first), model
        for name, listed in values(first).items():
            other = values(second)[name]
            assert listed == other or numpy.allclose(listed, other), (model, name, listed, other)
