"""The reference of an op version: from a call to what is expected."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any

import numpy as np

from harness.core import dims
from harness.core.dtypes import C128, F32, F64, DType, of
from harness.core.errors import RuleError, Unsupported
from harness.core.instance import SKIPPED, Arg
from harness.declare.codec import Call, Codec, Slotted
from harness.declare.entry import agreement, constancy
from harness.declare.expected import Expected, context_of
from harness.declare.op_version.sampler import Sampler
from harness.tolerance import Context, Tolerance, through
from harness.tolerance.underspecified import Underspecified


class OpVersion(Sampler):
    """One op at one version of one dialect.  ``Resolved`` has its names, ``Sampler`` its draws; here stands what the
    reference says of a call."""

    def call(self, attrs: dict[str, Any], inputs: dict[str, Any], opset: Any, **kw: Any) -> Call:
        return Call(self, attrs, inputs, opset, **kw)

    @cached_property
    def _tensor_plan(self) -> list[tuple[str, str | None, Codec]]:
        """Tensors that are taken as they come, with their slot, and those that their codec has to read."""
        return [
            (n, c.slot if type(c) is Slotted and c.to_ours is None else None, c) for n, c in self.tensor_codecs.items()
        ]

    def decode(self, call: Call) -> tuple[dict[str, Any], dict[str, Any]]:
        """Semantic tensors and parameters of a call."""
        get = call.inputs.get
        tensors = {n: get(slot) if slot is not None else c.decode(call) for n, slot, c in self._tensor_plan}
        m = self.meaning
        if not self.param_codecs and not self._pinned:
            return tensors, {}
        params = dict(self._pinned)
        for n, c in self.param_codecs.items():
            v = c.decode(call)
            if v is None and m is not None and n in m.defaults:
                v = m.defaults[n]
            params[n] = v
        return tensors, params

    @cached_property
    def _pinned(self) -> dict[str, Any]:
        """Parameters that no codec reads: the meaning's defaults under what the entry fixes."""
        return {**(self.meaning.defaults if self.meaning is not None else {}), **self.entry.spelling.fixed}

    def check(self, call: Call) -> None:
        """Raises RuleError where the shapes of a call are not as the meaning is annotated, or one of its rules does not
        hold: for what no generator drew, since evaluating finds only some of that out."""
        m = self.meaning
        if m is None:
            return
        m.hold(*self.decode(call))

    def hold_stated(self, call: Call) -> None:
        """Raises RuleError "shapes-stated"."""
        env: dict[str, Any] = {}
        for slot, pattern in self.entry.checks.stated.items():
            given = call.inputs.get(slot)
            if given is None:
                continue
            try:
                dims.bind(dims.parse(pattern if isinstance(pattern, str) else pattern(call)), given.shape, env, slot)
            except dims.ShapeMismatch as e:
                raise RuleError("shapes-stated", str(e)) from e

    def evaluate(self, call: Call) -> list[Expected]:
        """The reference's outputs, each rounded once.  Raises RuleError where the op set forbids the inputs."""
        e = self.entry
        tensors: dict[str, Any] = {}
        params: dict[str, Any] = {}
        if self._checked:
            self._check_entry(call)
        if e.evaluation is not None:
            raw = e.evaluation.fn(call)
        else:
            m = self.meaning
            assert m is not None
            tensors, params = self.decode(call)
            try:
                raw = m.fn(**tensors, **params)
            except (ValueError, TypeError, LookupError, ArithmeticError):
                m.hold(tensors, params)  # what the body stumbled over has a name, if it is stated
                raise
        if type(raw) is np.ndarray and e.spelling.out is None and call.n_outs == 1:  # as most are
            return [self._expect(call, 0, raw, tensors, params)]
        results = list(raw) if isinstance(raw, (tuple, list)) else [raw]
        if e.spelling.out is not None:
            results = e.spelling.out(call, results)
        for i in call.attrs.get(SKIPPED, ()):
            results[i] = None
        if len(results) == 1 == call.n_outs:
            return [self._expect(call, 0, results[0], tensors, params)]
        shared: dict[Any, Any] = {}
        return [self._expect(call, i, r, tensors, params, shared) for i, r in enumerate(results[: call.n_outs])]

    @cached_property
    def _checked(self) -> bool:
        """Does the entry state anything about its calls?"""
        checks = self.entry.checks
        return bool(checks.agrees or checks.constant or checks.only or checks.stated)

    def _check_entry(self, call: Call) -> None:
        """Raises RuleError or Unsupported where a call is not as the entry states."""
        checks = self.entry.checks
        for name, shown in checks.agrees.items():
            said = call.attrs.get(name)
            if said is not None and said != shown(call):
                raise RuleError(agreement(name), f"{said}, but the operands show {shown(call)}")
        for slot, needed in checks.constant.items():
            arg = call.args.get(slot) if call.args is not None else None
            if type(arg) is Arg and not arg.const and needed(call):
                raise RuleError(constancy(slot), "expected a constant, got an input of the run")
        for name, value in checks.only.items():
            known = value if isinstance(value, tuple) else (value,)
            if call.attr(name, known[0]) not in known:
                words = " ".join(map(repr, known))
                raise Unsupported(f"{self.key}: {name} = {call.attr(name)!r}, the reference knows {words} alone")
        if checks.stated:
            self.hold_stated(call)

    def underspecified(self, call: Call) -> str | None:
        """What the spec leaves open about a call, or None; a plain string leaves all open."""
        own, m = self.entry.checks.ambiguous, self.meaning
        why = None
        if own is not None:
            why = own(call)
        elif m is not None and m.ambiguous is not None:
            why = m.ambiguous(*self.decode(call))
        settled = self.entry.checks.settles
        if not settled or why is None:
            return why
        return why.without(settled) if isinstance(why, Underspecified) else None if why == settled else why

    def _expect(
        self,
        call: Call,
        i: int,
        r: Any,
        tensors: dict[str, Any],
        params: dict[str, Any],
        shared: dict[Any, Any] | None = None,
    ) -> Expected:
        error = self._only_error or self._error(i)
        if not isinstance(r, np.ndarray):
            if isinstance(r, (str, bytes)):  # NumPy hands out the element of an object array where no axis is left
                one = np.empty((), object)
                one[()] = r
                return self._expect(call, i, one, tensors, params, shared)
            if not isinstance(r, np.generic):  # containers: lists of arrays, None
                return Expected(r, None, _container_dtype(r), error, lambda: _no_context(self.key))
            r = np.asarray(r)
        have = of(r)
        want = self.out_dtype(call, i, have)
        wide = None
        value = r
        if want is not have:
            if have is F64 and want.kind == "f":
                wide, value = r, self.dialect.round(r, want)
            elif have.np == np.complex128 and want.kind == "c":
                wide, value = r, r.astype(want.np)
            elif want.np != have.np:
                raise RuleError("reference-dtype", f"{self.key}: output {i} is {have}, the op set says {want}")
        elif have is F64 or have is C128:
            wide = r
        function = getattr(self.entry.spelling.out, "function", None)
        last = function(call) if function is not None and i == 0 and want.kind == "f" else None
        if last is not None:
            error = through(error, *last)

        context = partial(context_of, call, i, want, value, wide, tensors, params, shared)
        return Expected(value, wide, want, error, context)

    @cached_property
    def _only_error(self) -> Tolerance | None:
        """The class of all outputs, where there is one."""
        e = self.entry.error
        if e is None and self.meaning is not None:
            e = self.meaning.error
        return e if isinstance(e, Tolerance) else None

    def _error(self, i: int) -> Tolerance:
        e = self.entry.error
        if e is not None:
            return e[min(i, len(e) - 1)] if isinstance(e, tuple) else e
        assert self.meaning is not None, f"{self.key}: an entry without meaning states its tolerance"
        return self.meaning.error_of(i)

    def out_dtype(self, call: Call, i: int, have: DType) -> Any:
        """The type that output ``i`` is declared with: entry, model declaration, bound type name, or what came."""
        if self.entry.spelling.out_dtype is not None:
            return self.entry.spelling.out_dtype(call, i)
        if call.outs is not None and i < len(call.outs):
            return call.outs[i]["dtype"]
        plan = self._out_types
        slots, only = plan[i] if i < len(plan) else plan[-1]
        for name in slots:
            v = call.inputs.get(name)
            while isinstance(v, (list, tuple)):
                v = v[0] if v else None
            if v is not None:
                return of(v)
        return only or have

    @cached_property
    def _out_types(self) -> list[tuple[tuple[str, ...], DType | None]]:
        """Per output: the inputs that bind its type name, else the only type that it can have."""
        out: list[tuple[tuple[str, ...], DType | None]] = []
        for slot in self.schema.outputs:
            if slot.variadic and self.entry.evaluation is not None:
                out.append(((), None))  # outputs of blocks: each has a type of its own
                continue
            allowed = self.schema.dtypes(slot.element)
            binds = tuple(s.name for s in self.schema.inputs if s.element == slot.element)
            out.append((binds, allowed[0] if len(allowed) == 1 else None))
        return out or [((), None)]


def _container_dtype(r: Any) -> DType:
    while isinstance(r, (list, tuple)) and r:
        r = r[0]
    return of(r) if isinstance(r, np.ndarray) else F32


def _no_context(key: str) -> Context:
    raise TypeError(f"{key}: a container has no error context")
