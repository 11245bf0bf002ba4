"""LitServe: python litserve_echo.py PORT"""

import sys

import litserve


class Echo(litserve.LitAPI):
    def setup(self, device):
        pass

    def decode_request(self, request):
        return request

    def batch(self, inputs):
        return inputs

    def predict(self, items):
        return items

    def unbatch(self, outputs):
        return outputs

    def encode_response(self, output):
        return output


if __name__ == "__main__":
    server = litserve.LitServer(Echo(max_batch_size=32, batch_timeout=0.001), accelerator="cpu", track_requests=False)
    server.run(host="127.0.0.1", port=int(sys.argv[1]), generate_client_file=False, log_level="error")
