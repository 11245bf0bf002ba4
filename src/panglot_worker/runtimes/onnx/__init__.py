"""Model files of ONNX."""
