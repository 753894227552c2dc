"""Run an ``onnx-node`` pack through the onnx package's own loader and runner: ``python backend_test.py PACK``.

The backend under test is ONNX Runtime.  Put the class of another one in the place of ``Runtime``.
"""

import sys
import unittest

import onnx
import onnxruntime as ort
from onnx.backend.base import Backend, BackendRep
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner

GAPS = ("NOT_IMPLEMENTED", "Could not find an implementation", "is not currently registered", "No Op registered")


class Session(BackendRep):
    """A loaded model."""

    def __init__(self, session):
        self.session = session

    def run(self, inputs, **kwargs):
        """Outputs for inputs in the order of the model's."""
        names = [i.name for i in self.session.get_inputs()]
        try:
            return self.session.run(None, dict(zip(names, inputs)))
        except RuntimeError as e:
            if "Numpy" in str(e):  # bf16, float8 and others, for which the Python binding has no arrays
                raise unittest.SkipTest(str(e)) from None
            raise


class Runtime(Backend):
    """ONNX Runtime without optimisations; what it declares a gap is skipped."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs):
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 4
        try:
            made = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        except Exception as e:
            if any(gap in str(e) for gap in GAPS):
                raise unittest.SkipTest(str(e)) from None
            raise
        return Session(made)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device == "CPU"


class Pack(Runner):
    """The tests of a pack alone, where onnx's own runner adds those that the package ships."""

    def __init__(self, backend, folder):
        super().__init__(backend)
        self._test_items.clear()
        for test in load_model_tests(data_dir=folder, kind="cases"):
            self._add_model_test(test, "Pack")


if __name__ == "__main__":
    result = unittest.TextTestRunner(verbosity=0).run(Pack(Runtime, sys.argv[1]).test_suite)
    print(f"{result.testsRun} run, {len(result.failures) + len(result.errors)} failed, {len(result.skipped)} skipped")
    raise SystemExit(not result.wasSuccessful())
