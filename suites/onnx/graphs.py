"""``python -m suites.onnx.graphs``: the former name of ``python -m suites.onnx_models``, which it runs."""

import runpy

if __name__ == "__main__":
    runpy.run_module("suites.onnx_models", run_name="__main__", alter_sys=True)
