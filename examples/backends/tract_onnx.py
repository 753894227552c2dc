"""tract, an inference engine in Rust, through its Python package, as a backend:

python3 -m venv tract && tract/bin/pip install tract numpy
cd examples/backends
opconform run --dialect onnx --backend tract_onnx:Tract --backend-python ../../tract/bin/python
"""

import os
import tempfile

import tract


class Unsupported(Exception):
    """What tract says that it does not implement: a gap, no failure."""


class Tract:
    name = "tract"
    formats = ("onnx",)
    opsets = (9, 18)  # those that its README promises
    dtypes = ("f16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool")
    validates = False
    pack = 8
    acc = {"f16": "f16"}

    def __init__(self):
        self.onnx = tract.onnx()

    def version(self):
        return tract.version()

    def load(self, model, format):
        with tempfile.NamedTemporaryFile(suffix=".onnx", delete=False) as file:
            file.write(model)
        try:
            parsed = self.onnx.load(file.name)
            inputs = [parsed.input_name(i) for i in range(parsed.input_count())]
            return inputs, parsed.into_model().into_runnable()
        except tract.TractError as e:
            raise told(e) from None
        finally:
            os.unlink(file.name)

    def run(self, handle, inputs):
        names, runnable = handle
        try:  # tract names outputs after nodes: a list is taken in the order of the model
            return [y.to_numpy() for y in runnable.run([inputs[n] for n in names])]
        except tract.TractError as e:
            raise told(e) from None


def told(e):
    """tract's own words: what it does not implement is a gap."""
    text = str(e)
    gap = any(g in text.lower() for g in ("unimplemented", "not implemented", "not supported", "unsupported"))
    return Unsupported(text) if gap else e
