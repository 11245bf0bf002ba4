"""TorchServe's two services of gRPC."""
