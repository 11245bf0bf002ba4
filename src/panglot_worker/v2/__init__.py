"""Tensors of the Open Inference Protocol: requests to tensors, tensors to answers, over REST and gRPC alike."""
