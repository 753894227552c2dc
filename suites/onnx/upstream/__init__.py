"""The test cases that the onnx package carries, run through our interpreter."""
