"""The execution providers with a name, and the form in which a user names any other.

To add a provider, add one entry to ``PROVIDERS``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from harness.core.errors import UsageError
from harness.workers.spec import Spec

PREFIX = "ep:"
LIBRARY = "library"  # the option that names a plug-in library; every other option is the provider's
_HERE = Path(__file__).parent
OPTION: dict[str, Any] = {  # of ``--provider``, on the command line and under pytest
    "action": "append",
    "dest": "backend",
    "type": (PREFIX + "{}").format,
    "metavar": "NAME[:KEY=VALUE,...]",
    "help": "this execution provider of ONNX Runtime as a backend; repeatable (opconform list providers)",
}


@dataclass(frozen=True)
class Provider:
    """One execution provider with a name.

    name: as ONNX Runtime calls it.
    short: its backend is ``onnxruntime-<short>``.
    package: what brings it.  needs: what else it needs.
    module: of a plug-in package; its ``get_library_path`` or ``library_path`` names the library.
    options: it gets these unless the user gives others.
    environ: environment variables of its process, unless they are set.
    declares: its claims and its arithmetic, as the class of a backend declares them.
    source: where its makers state that arithmetic.
    known_as: further names under which its differences are listed.
    gaps: texts of an exception which tell that the device, not the provider, lacks something.
    """

    name: str
    short: str
    package: str
    needs: str = ""
    module: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    declares: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    environ: Mapping[str, str] = field(default_factory=dict)
    known_as: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()

    @property
    def backend(self) -> str:
        """The name of its backend."""
        return f"onnxruntime-{self.short}"

    @property
    def installed(self) -> str:
        """The version of its package in this Python; empty without it."""
        try:
            return metadata.version(self.package)
        except metadata.PackageNotFoundError:
            return ""


WGSL = "WebGPU Shading Language, 'Floating Point Evaluation': 'Floating Point Accuracy', 'Differences from IEEE-754'"
# Accuracy of f32 there: exp(x) 3 + 2 |x| ulp; log(x) 2^-21 in [0.5, 2], 3 ulp elsewhere; sqrt as 1 / inverseSqrt, of 2
# ulp, with a division of 2.5 ulp; x / y 2.5 ulp; sin and cos 2^-11 in [-pi, pi]; pow(x, y) as exp2(y * log2(x)); tanh
# 1e-5 or as sinh / cosh; sinh and cosh as (exp(x) -+ exp(-x)) / 2, so 3 ulp of 1 beside 0; atan and atan2 4096 ulp;
# asin(x) 6.81e-5 or as atan2(x, sqrt(1 - x * x)), the worse of both, and acos(x) 6.77e-5 or as atan2(sqrt(1 - x * x),
# x); atanh as log((1 + x) / (1 - x)) / 2.  What is no function there follows from these: sigmoid as 1 / (1 + exp(-x)),
# softmax as exp(x) / sum, softplus as log(1 + exp(x)).  Subnormals may be flushed; an implementation may assume that
# there is no NaN and no infinity.
_WGSL_OPS: Mapping[str, Any] = {
    "Exp": {"ulp": 3.0, "ulp_per_log": 2.0},
    "Log": {"absolute": 2.0**-21, "ulp": 3.0},
    "Sqrt": {"ulp": 4.5},
    "Reciprocal": {"ulp": 2.5},
    "Div": {"ulp": 2.5},
    "Sin": {"absolute": 2.0**-11},
    "Cos": {"absolute": 2.0**-11},
    "Tanh": {"absolute": 1e-5},
    "Sinh": {"absolute": 2.0**-21, "ulp": 6.0, "ulp_per_log": 2.0},
    "Cosh": {"absolute": 2.0**-21, "ulp": 6.0, "ulp_per_log": 2.0},
    "Atan": {"ulp": 4096.0},
    "Asin": {"absolute": 6.81e-5, "ulp": 4100.0},
    "Acos": {"absolute": 6.77e-5, "ulp": 4100.0},
    "Atanh": {"absolute": 2.0**-21, "ulp": 6.0},
    "Pow": {"ulp": 4.0, "ulp_per_log": 10.0},
    "Sigmoid": {"ulp": 6.0, "ulp_per_log": 2.0},
    "Softmax": {"ulp": 8.0, "ulp_per_log": 2.0},
    "LogSoftmax": {"absolute": 2.0**-20, "ulp": 4.0},
    "ReduceLogSumExp": {"absolute": 2.0**-20, "ulp": 4.0},
    "Softplus": {"absolute": 2.0**-20, "ulp": 4.0},
}

# As the backend openvino: in f32 (the default of a processor with AMX is bf16), on one thread, with subnormals kept.
_OPENVINO = json.dumps(
    {
        "CPU": {
            "INFERENCE_PRECISION_HINT": "f32",
            "EXECUTION_MODE_HINT": "ACCURACY",
            "INFERENCE_NUM_THREADS": "1",
            "CPU_DENORMALS_OPTIMIZATION": "NO",
        }
    }
)
PROVIDERS = (
    Provider(
        "WebGpuExecutionProvider",
        "webgpu",
        "onnxruntime-webgpu",
        needs="a Vulkan, Metal or Direct3D 12 adapter; on Linux VK_ICD_FILENAMES chooses it, SwiftShader too",
        declares={
            "acc": {"f16": "f16"},
            "flushes": ["f32", "f16"],
            "limits": {"finite": True},
            "absolute": _WGSL_OPS,
            "memory": "resident",
        },
        source=WGSL,
        gaps=("but the device does not support it",),  # f16 is an optional feature of WebGPU, "shader-f16"
    ),
    Provider(
        "OpenVINOExecutionProvider",
        "openvino-ep",
        "onnxruntime-ep-openvino",
        module="onnxruntime_ep_openvino",
        options={"load_config": _OPENVINO},
        known_as=("openvino",),  # its kernels are those of OpenVINO
    ),
    Provider(
        "ggml",
        "ggml",
        "onnxruntime-ggml",
        module="onnxruntime_ggml",
        options={"device": "cpu", "threads": "1", "weights": "f32"},  # f16 weights are the default
        environ={"GGML_NO_BACKTRACE": "1"},  # or an abort starts a debugger, which takes seconds
    ),
    Provider(
        "QNNExecutionProvider",
        "qnn",
        "onnxruntime-qnn",
        "a Qualcomm NPU, or Linux on x86-64, where the package simulates one",
        module="onnxruntime_qnn",
        options={"backend_type": "htp"},  # it has no default where there is no NPU
        gaps=("Having zero graph inputs is not supported on this backend",),
    ),
    Provider("CUDAExecutionProvider", "cuda", "onnxruntime-gpu", "an NVIDIA GPU, CUDA and cuDNN"),
    Provider("TensorrtExecutionProvider", "tensorrt", "onnxruntime-gpu", "an NVIDIA GPU and TensorRT"),
    Provider("NvTensorRTRTXExecutionProvider", "tensorrt-rtx", "onnxruntime-trt-rtx", "an NVIDIA RTX GPU"),
    Provider("MIGraphXExecutionProvider", "migraphx", "onnxruntime-migraphx", "an AMD GPU and ROCm"),
    Provider("CoreMLExecutionProvider", "coreml-ep", "onnxruntime", "macOS"),
    Provider(
        "MLXExecutionProvider",
        "mlx",
        "onnxruntime-ep-mlx",
        "macOS 14 on Apple Silicon, ONNX Runtime 1.31",
        module="onnxruntime_ep_mlx",
        declares={"flushes": ["f32"]},
        source="Metal Shading Language Specification, 'Numerical Compliance': subnormals of f32 may be flushed",
    ),
)
_BY_NAME = {n: p for p in PROVIDERS for n in (p.name, p.backend)}


def spec_of(name: str) -> Spec | None:
    """The backend that ``name`` asks for, as the name of a provider's backend or as ``ep:NAME[:key=value,...]``; None
    where it asks for no provider.  Raises UsageError."""
    if not name.startswith(PREFIX):
        return _spec(name, _BY_NAME[name], {}) if name in _BY_NAME else None
    provider, _, rest = name.removeprefix(PREFIX).partition(":")
    options = {}
    for pair in filter(None, rest.split(",")):
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise UsageError(f"provider {name!r}: expected NAME or NAME:key=value,..., got {pair!r}")
        options[key] = value
    found = _BY_NAME.get(provider)
    if not provider or (found is None and LIBRARY not in options and not provider.endswith("ExecutionProvider")):
        known = " ".join(p.name for p in PROVIDERS)
        raise UsageError(f"provider {provider!r}: expected one of {known}, or another with {LIBRARY}=PATH")
    if found is not None and not options:
        name = found.backend
    return _spec(name, found or Provider(provider, provider, "onnxruntime"), options)


def _spec(name: str, p: Provider, options: Mapping[str, str]) -> Spec:
    given = {k: v for k, v in {**p.options, **options}.items() if k != LIBRARY}
    kwargs = {
        "name": name,
        "provider": p.name,
        "options": given,
        "module": p.module,
        "library": options.get(LIBRARY, ""),
        "package": p.package,
        "environ": dict(p.environ),
        "gaps": list(p.gaps),
        "known_as": [n for n in dict.fromkeys((p.backend, *p.known_as)) if n != name],
        "declares": dict(p.declares),
    }
    return Spec(name, "Provider", file=str(_HERE / "adapter.py"), kwargs=kwargs, on_request=True)
