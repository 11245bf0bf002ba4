"""Asks any models by NVIDIA's client, with a file as the native body or with numbers of the shapes they say.

Arguments: HTTP gRPC PLAN, which is JSON: model, tensor and file of each; without a tensor it is the model's own first,
without a file numbers are sent.
"""

import json
import sys

import numpy
import report
import tritonclient.grpc as by_grpc
import tritonclient.http as by_http


def inputs(module, about, tensor, file):
    if file:
        first = about["inputs"][0]
        with open(file, "rb") as opened:
            content = numpy.array([opened.read()], object).reshape([1] * len(first["shape"]))
        sent = module.InferInput(tensor or first["name"], list(content.shape), "BYTES")
        sent.set_data_from_numpy(content)
        return [sent]
    made = []
    for described in about["inputs"]:
        shape = [2 if size < 0 else size for size in described["shape"]]
        array = numpy.random.default_rng(5).random(shape, numpy.float32)
        assert described["datatype"] == "FP32", described
        made.append(module.InferInput(described["name"], shape, "FP32"))
        made[-1].set_data_from_numpy(array)
    return made


def check_http_and_grpc_give_the_same(http, grpc, plan):
    clients = (by_http, by_http.InferenceServerClient(http)), (by_grpc, by_grpc.InferenceServerClient(grpc))
    for model, tensor, file in json.loads(plan):
        about = clients[0][1].get_model_metadata(model)
        answers = []
        for module, client in clients:
            result = client.infer(model, inputs(module, about, tensor, file))
            answer = result.get_response(as_json=True) if module is by_grpc else result.get_response()
            names = [output["name"] for output in answer["outputs"]]
            assert names, model
            assert answer["model_name"] == model
            answers.append({name: result.as_numpy(name) for name in names})
            if about["outputs"]:
                assert set(names) <= {output["name"] for output in about["outputs"]} or file, names
        first, second = answers
        assert first.keys() == second.keys()
        for name in first:
            assert first[name].shape == second[name].shape
            assert numpy.array_equal(first[name], second[name]), (model, name)


if __name__ == "__main__":
    report.run(sys.modules["__main__"], *sys.argv[1:])
