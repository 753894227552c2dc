"""A PyTorch module -> package, program, and under which name every layer's result stands in the program."""

from __future__ import annotations

import copy
import logging
import re
import warnings
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import coremltools as ct
import numpy as np
import torch
from torch import nn

from suites.mil_networks.models import Network, layers

logging.getLogger("coremltools").setLevel(logging.ERROR)  # it says which PyTorch its makers have tried


@dataclass
class Converted:
    """package: path.  program: pymil.  names: path of a layer -> names of its results, those that PyTorch's front end
    gives them.  operations: name of a value -> name of its operation, before types were narrowed.  states: state's
    name in the program -> path of the buffer."""

    package: Path
    program: Any
    names: dict[str, list[str]]
    operations: dict[str, str]
    states: dict[str, str]


def convert(
    m: nn.Module,
    net: Network,
    target: str,
    precision: str,
    frontend: str,
    folder: Path,
    *,
    without: Collection[str] = (),
) -> Converted:
    """Convert ``m`` and save it under ``folder``.  without: graph passes to leave out."""
    inputs = net.inputs(torch.Generator().manual_seed(0))
    m = copy.deepcopy(m)  # tracing runs it, which moves its states on
    states: dict[str, str] = {}
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        if frontend == "export":
            source = torch.export.export(m, inputs).run_decompositions({})
            names = _exported(source)
        else:
            source, names = _traced(m, inputs)

        def converted(to: str, precision: str, **more: Any) -> Any:
            if frontend == "trace":  # made anew each time: conversion changes the descriptions that it is given
                more.update(_described(m, net, inputs))
            pipeline = ct.PassPipeline()
            pipeline.remove_passes(without)
            return ct.convert(
                source,
                convert_to=to,
                minimum_deployment_target=getattr(ct.target, target),
                compute_precision=getattr(ct.precision, precision),
                pass_pipeline=pipeline,
                **more,
            )

        full = converted("milinternal", "FLOAT32")
        made = converted("mlprogram", precision, skip_model_load=True)
        if net.bits:
            made = _palettised(made, net.bits)
    package = folder / f"{target}-{precision}-{frontend}.mlpackage"
    made.save(str(package))
    program = made._mil_program
    for name in program.functions["main"].inputs:
        states.update((name, path) for path in net.states if _plain(name) == _plain(path))
    operations = {v.name: op.name for op in full.functions["main"].operations for v in op.outputs}
    return Converted(package, program, names, operations, states)


def _plain(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _described(m: nn.Module, net: Network, inputs: tuple[torch.Tensor, ...]) -> dict[str, Any]:
    """Inputs and states, which a traced module does not describe itself."""
    buffers = dict(m.named_buffers())
    shapes = {path: ct.TensorType(shape=tuple(buffers[path].shape), dtype=np.float16) for path in net.states}
    described = {
        "inputs": [ct.TensorType(f"x{i}", tuple(x.shape), dtype=x.numpy().dtype) for i, x in enumerate(inputs)],
        "states": [ct.StateType(t, name=path) for path, t in shapes.items()],
    }
    return {k: v for k, v in described.items() if v}


def _palettised(model: Any, bits: int) -> Any:
    from coremltools.optimize import coreml

    op = coreml.OpPalettizerConfig(nbits=bits, mode="uniform", weight_threshold=0)
    return coreml.palettize_weights(model, coreml.OptimizationConfig(global_config=op))


def _exported(program: Any) -> dict[str, list[str]]:
    """The last node of every module gives its result."""
    names: dict[str, list[str]] = {}
    for node in program.graph.nodes:
        stack = list((node.meta.get("nn_module_stack") or {}).values())
        if node.op == "call_function" and stack:
            if str(node.target).startswith("<built-in function getitem"):
                node = node.args[0]
            names[stack[-1][0]] = [node.name]
    return names


def _traced(m: nn.Module, inputs: Any) -> tuple[Any, dict[str, list[str]]]:
    """While it is traced, every layer names its results itself: the names that tracing makes up are numbers, and
    conversion counts them anew."""
    names: dict[str, list[str]] = {}

    def hook(path: str) -> Any:
        def seen(_module: Any, _inputs: Any, out: Any) -> None:
            names[path] = []
            for i, t in enumerate(flat(out)):
                names[path].append(f"layer_{path}_{i}".replace(".", "_"))
                torch._C._get_value_trace(t).setDebugName(names[path][-1])

        return seen

    handles = [sub.register_forward_hook(hook(path)) for path, sub in layers(m).items()]
    try:
        return torch.jit.trace(m, inputs, check_trace=False), names
    finally:
        for h in handles:
            h.remove()


def flat(out: Any) -> list[torch.Tensor]:
    """The tensors of a layer's result, in order."""
    return [out] if isinstance(out, torch.Tensor) else [t for o in out for t in flat(o)]


def placed(made: Converted, m: nn.Module, present: Iterable[str]) -> dict[str, list[str | None]]:
    """Where each layer's results stand in a program with the values ``present``; None where one is not there.

    A pass that narrows types names the new value after the old one, or after an operation with a name of its own; one
    that states the shape of a transposed convolution says so.  The first of several results has its number behind.
    """
    here = sorted(present)

    def find(name: str, several: bool) -> str | None:
        end = "_0" if several else ""
        if name + end in here:
            return name + end
        operation = made.operations.get(name)
        for base in (name, *([operation] if operation and operation not in made.operations else [])):
            narrowed = re.compile(rf"{re.escape(base)}(_has_output_shape)?(_cast_[a-z0-9]+)*{end}")
            found = next((n for n in here if narrowed.fullmatch(n)), None)
            if found:
                return found
        return None

    def results(names: list[str]) -> list[str | None]:
        return [find(n, several=len(names) > 1 and i == 0) for i, n in enumerate(names)]

    return {path: results(made.names.get(path, [])) for path in layers(m)}


def restored(m: nn.Module, program: Any) -> nn.Module:
    """``m`` with the weights that palettising has left, found by the names that conversion gives them."""
    m = copy.deepcopy(m)
    weights = decompressed(program)
    for path, p in m.named_parameters():
        found = [v for name, v in weights.items() if name.removeprefix("p_").startswith(_plain(path))]
        if found:
            with torch.no_grad():
                p.copy_(torch.from_numpy(found[0].astype(np.float32)))
    return m


def decompressed(program: Any) -> dict[str, np.ndarray]:
    """Palettised weights of a program by name, looked up here and not by what is under test.

    iOS 16 packs the indices into bytes, the lowest bits first, and gives the shape; from iOS 18 on they are a tensor of
    their own and the table has one axis for each of theirs, then the entries, then the vector's elements.
    Source: MIL constexpr_lut_to_dense, iOS16 and iOS18.
    """
    out = {}
    for op in program.functions["main"].find_ops(op_type="constexpr_lut_to_dense"):
        lut, indices = np.asarray(op.lut.val), np.asarray(op.indices.val)
        if lut.ndim == 1:
            shape = tuple(int(n) for n in np.asarray(op.shape.val))
            bits = int(lut.size).bit_length() - 1
            flat = np.unpackbits(indices, bitorder="little").reshape(-1, bits)[: int(np.prod(shape))]
            picked = lut[(flat << np.arange(bits)).sum(1)].reshape(shape)
        else:
            assert lut.shape[:-2] == (1,) * indices.ndim, lut.shape
            assert lut.shape[-1] == 1, lut.shape
            picked = lut.reshape(-1)[indices.astype(np.int64)]
        out[op.outputs[0].name] = picked
    return out
