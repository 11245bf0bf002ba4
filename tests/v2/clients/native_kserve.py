"""The same as `native`, by KServe's client."""

import json

import numpy
from kserve import InferenceGRPCClient, InferenceRESTClient, InferInput, InferRequest, RESTConfig


def request(model, tensor, file):
    if file:
        with open(file, "rb") as opened:
            array, datatype = numpy.array([opened.read()], object).reshape([1, 1]), "BYTES"
    else:
        array, datatype = numpy.random.default_rng(5).random((2, 64), numpy.float32), "FP32"
    sent = InferInput(tensor, list(array.shape), datatype)
    sent.set_data_from_numpy(array, binary_data=True)
    return InferRequest(model, [sent], parameters={"binary_data_output": True})


def elements(output):
    """What is in an output; it makes str of what came by REST, and bytes of the same by gRPC."""
    array = output.as_numpy()
    flat = [value.encode() if isinstance(value, str) else value for value in array.ravel().tolist()]
    return array.shape, flat


async def check_rest_and_grpc_give_the_same(http, grpc, plan):
    rest, rpc, base = InferenceRESTClient(RESTConfig(protocol="v2")), InferenceGRPCClient(grpc), "http://" + http
    for model, tensor, file in json.loads(plan):
        assert await rest.is_model_ready(base, model)
        assert await rpc.is_model_ready(model)
        first = await rest.infer(base, request(model, tensor, file), model)
        second = await rpc.infer(request(model, tensor, file))
        assert first.model_name == second.model_name == model
        assert [output.name for output in first.outputs] == [output.name for output in second.outputs] != []
        for one, other in zip(first.outputs, second.outputs, strict=True):
            assert elements(one) == elements(other), (model, one.name)
    await rest.close()
    await rpc.close()
