"""What a backend's file states in its source: the host reads it without the runtime, and it is what the class says."""

import ast

import pytest

from harness.backends import registry
from harness.compare import blame
from harness.workers.source import stated

FILES = [n for n, s in registry.BUILTIN.items() if s.file]
SCRIPTED = [n for n in FILES if registry.script(n) is not None]
ALLOWED = {
    "onnxruntime": {"onnxruntime"},
    "litert": {"ai_edge_litert"},
    "openvino": {"openvino"},
    "onnx_reference": {"onnx"},
}


@pytest.mark.parametrize("name", FILES)
def test_every_backend_states_its_formats(name):
    assert registry.formats_of(name)
    assert registry.family(name)


@pytest.mark.parametrize("name", ["onnxruntime", "onnxruntime-cross-dialect", "litert-xnnpack", "coremltools-symbolic"])
def test_facts_in_the_source_equal_those_of_the_class(name):
    with registry.create(name) as h:
        if why := h.missing():
            pytest.skip(why)
        assert h.info.formats == registry.formats_of(name)
        assert h.info.family == registry.family(name)


def test_backends_with_a_runtime_of_their_own_have_lines_of_a_script():
    assert {n.split("-")[0] for n in SCRIPTED} == {"onnxruntime", "litert", "openvino", "onnx"}
    assert registry.script("coremltools-fold") is None
    assert registry.script("module:Class") is None


@pytest.mark.parametrize("name", SCRIPTED)
def test_the_lines_of_a_script_need_the_runtime_and_numpy_alone(name):
    tree = ast.parse(registry.script(name), feature_version=(3, 8))
    assert "run" in [n.name for n in tree.body if isinstance(n, ast.FunctionDef)]
    imports = [a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names]
    imports += [n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
    stem = registry.BUILTIN[name].file.rpartition("/")[2].removesuffix(".py")
    assert {i.split(".")[0] for i in imports} - {"ctypes", "ml_dtypes"} == ALLOWED[stem]


def test_one_family_is_one_opinion():
    alone = {"litert-ref": "mismatch", "litert-opt": "mismatch", "litert-cross-dialect": "mismatch"}
    assert blame(alone, registry.family).alone is None
    assert blame({**alone, "onnxruntime": "mismatch"}, registry.family).alone == "reference"
    assert registry.family("no such backend") == "no such backend"


def test_a_base_and_a_constant_are_found_and_what_is_computed_is_not(tmp_path):
    file = tmp_path / "backend.py"
    file.write_text(
        'import no_such_runtime\n\nTEXT = "text"\n\nclass Base:\n    formats = ("a",)\n    script = TEXT\n\n'
        "class Mine(Base):\n    formats = tuple(no_such_runtime.FORMATS)\n"
    )
    assert stated(str(file), "Base", "formats") == ("a",)
    assert stated(str(file), "Mine", "script") == "text"
    assert stated(str(file), "Mine", "formats") is None
    assert stated(str(file), "Mine", "family") is None
    assert stated(str(file), "Other", "formats") is None
