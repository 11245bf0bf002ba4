"""NVIDIA's client, which reads its stream more slowly than a model sends. Runs in an environment of its own."""

import sys
import time

import numpy
import tritonclient.grpc as by_grpc

PARTS = 300


def main(address, model):
    client, got = by_grpc.InferenceServerClient(address), []

    def take(result, error):
        assert error is None, error
        time.sleep(0.005)
        got.append(int(result.as_numpy("PART").item().split()[0]))

    how, count = by_grpc.InferInput("HOW", [1], "BYTES"), by_grpc.InferInput("COUNT", [1], "INT32")
    how.set_data_from_numpy(numpy.array([b"thread"], object))
    count.set_data_from_numpy(numpy.array([PARTS], numpy.int32))
    client.start_stream(callback=take)
    client.async_stream_infer(model, [how, count])
    client.stop_stream()
    assert got == list(range(PARTS)), len(got)


main(*sys.argv[1:])
