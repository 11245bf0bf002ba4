"""Asks any model by NVIDIA's client, with a file as its native body or with numbers of the shapes it says.

Arguments: HTTP gRPC MODEL TENSOR FILE; without a tensor it is the model's own first, without a file numbers are sent.
"""

import sys

import numpy
import report
import tritonclient.grpc as by_grpc
import tritonclient.http as by_http


def inputs(module, about, tensor, file):
    if file:
        with open(file, "rb") as opened:
            content = numpy.array([opened.read()], object)
        found = module.InferInput(tensor or about["inputs"][0]["name"], [1], "BYTES")
        found.set_data_from_numpy(content)
        return [found]
    made = []
    for one in about["inputs"]:
        shape = [2 if size < 0 else size for size in one["shape"]]
        array = numpy.random.default_rng(5).random(shape, numpy.float32)
        assert one["datatype"] == "FP32", one
        made.append(module.InferInput(one["name"], shape, "FP32"))
        made[-1].set_data_from_numpy(array)
    return made


def check_http_and_grpc_give_the_same(http, grpc, model, tensor, file):
    clients = (by_http, by_http.InferenceServerClient(http)), (by_grpc, by_grpc.InferenceServerClient(grpc))
    about = clients[0][1].get_model_metadata(model)
    answers = []
    for module, client in clients:
        result = client.infer(model, inputs(module, about, tensor, file))
        answer = result.get_response(as_json=True) if module is by_grpc else result.get_response()
        names = [one["name"] for one in answer["outputs"]]
        assert names
        answers.append({name: result.as_numpy(name) for name in names})
        if about["outputs"]:
            assert set(names) <= {one["name"] for one in about["outputs"]} or file, names
    first, second = answers
    assert first.keys() == second.keys()
    for name in first:
        assert first[name].shape == second[name].shape
        assert numpy.array_equal(first[name], second[name])
    print({name: array.tolist() for name, array in first.items()}, file=sys.stderr)


if __name__ == "__main__":
    report.run(sys.modules["__main__"], *sys.argv[1:])
