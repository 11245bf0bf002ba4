"""What KServe's client asks, over REST and gRPC. Runs in an environment of its own."""

import sys

import numpy
import report
from kserve import InferenceGRPCClient, InferenceRESTClient, InferInput, InferRequest, RESTConfig
from native_kserve import check_rest_and_grpc_give_the_same  # noqa: F401

MODEL = "tensors"
X = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)


def request(binary, array=X, datatype="FP32", **more):
    tensor = InferInput("x", list(array.shape), datatype)
    tensor.set_data_from_numpy(array, binary_data=binary)
    return InferRequest(MODEL, [tensor], **more)


def same(answer, expected=X):
    assert answer.model_name == MODEL
    (output,) = answer.outputs
    found = output.as_numpy()
    assert found.shape == expected.shape
    assert (found == expected).all()


async def check_rest(http, grpc, plan):
    client = InferenceRESTClient(RESTConfig(protocol="v2"))
    base = "http://" + http
    assert await client.is_server_live(base)
    assert await client.is_server_ready(base)
    assert await client.is_model_ready(base, MODEL)
    for binary in (True, False):
        same(await client.infer(base, request(binary), MODEL))
        wanted = {"binary_data_output": binary}
        same(await client.infer(base, request(binary, parameters=wanted), MODEL))
    same(
        await client.infer(
            base, request(True, X.astype(numpy.float16), "FP16", parameters={"binary_data_output": True}), MODEL
        ),
        X.astype(numpy.float16),
    )
    await client.close()


async def check_grpc(http, grpc, plan):
    client = InferenceGRPCClient(grpc)
    assert await client.is_server_live()
    assert await client.is_server_ready()
    assert await client.is_model_ready(MODEL)
    for binary in (True, False):
        same(await client.infer(request(binary)))
    await client.close()


if __name__ == "__main__":
    report.run(sys.modules["__main__"], *sys.argv[1:])
