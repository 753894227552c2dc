"""How a meaning is declared: one annotated Python function over native kernels.

The annotations state the tensors (shapes by the grammar of ``dims``), the parameters and the result.  Everything else
(instances, invalid instances, shapes, bounds) is derived from them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, get_args, get_origin

from harness.core import dims
from harness.core.errors import RuleError
from harness.declare.annotations import Tensor, stated
from harness.declare.params import Param
from harness.generate.draw import Draw, T
from harness.tolerance import Tolerance, exact

DrawFn = Callable[[Draw], dict[str, Any]]
InvalidFn = Callable[[Draw], dict[str, Any] | None]  # None: these limits leave no room to break the rule


@dataclass
class Semantics:
    """A meaning.  Called like the function it wraps.

    tensors, params: of the signature.  result: one Tensor annotation per output, or None where the body alone knows.
    error: one class per output (a single one serves all).  rules: name -> expression over bound dims and params.
    data: recipes that its inputs are filled with; None takes the defaults by dtype.
    """

    fn: Callable[..., Any]
    name: str
    tensors: dict[str, Tensor]
    params: dict[str, Param]
    defaults: dict[str, Any]
    result: tuple[Tensor, ...] | None
    error: Tolerance | tuple[Tolerance, ...]
    source: str
    rules: dict[str, Any] = field(default_factory=dict)
    drawer: DrawFn | None = None
    data: Mapping[str, Any] | tuple[str, ...] | None = None
    invalid_generators: dict[str, InvalidFn] = field(default_factory=dict)
    min_rank: int = 0
    max_rank: int | None = None
    ambiguous: Callable[..., str | None] | None = None

    def __call__(self, *args: Any, **kw: Any) -> Any:
        return self.fn(*args, **kw)

    def draw(self, fn: DrawFn) -> DrawFn:
        """Decorator: ``fn(d)`` draws the arguments of this meaning instead of the derived generator."""
        self.drawer = fn
        return fn

    def breaks(self, rule: str) -> Callable[[InvalidFn], InvalidFn]:
        """Decorator: ``fn(d)`` draws arguments that break ``rule`` and nothing else."""

        def add(fn: InvalidFn) -> InvalidFn:
            self.invalid_generators[rule] = fn
            return fn

        return add

    def underspecified(self, tensors: Mapping[str, Any], params: Mapping[str, Any]) -> str | None:
        """What the text leaves open for these values; None where the meaning has no ``ambiguous`` predicate."""
        return None if self.ambiguous is None else self.ambiguous(tensors, params)

    def error_of(self, i: int) -> Tolerance:
        return self.error[min(i, len(self.error) - 1)] if isinstance(self.error, tuple) else self.error

    def bind(self, tensors: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
        """Names of the dims, from actual arrays; raises ``dims.ShapeMismatch``."""
        env: dict[str, Any] = dict(params)
        for name, ann in self.tensors.items():
            value = tensors.get(name)
            if value is None:
                continue
            for one in value if ann.variadic else (value,):
                dims.bind(ann.tokens, one.shape, env, name)
        return env

    def result_shapes(self, env: dict[str, Any]) -> list[tuple[int, ...] | None] | None:
        """Shapes that the return annotation promises; None for an output with a name of its own (the body tells)."""
        if self.result is None:
            return None
        own = [any(t.name is not None and t.name not in env for t in r.tokens) for r in self.result]
        return [None if free else dims.shape_of(r.tokens, env) for r, free in zip(self.result, own)]

    def check_rules(self, env: dict[str, Any]) -> None:
        """Raise RuleError for the first stated rule that does not hold."""
        for name, rule in self.rules.items():
            ok = dims.evaluate(dims.compiled(rule), env) if isinstance(rule, str) else rule(env)
            if not ok:
                raise RuleError(name, rule if isinstance(rule, str) else "")

    def hold(self, tensors: Mapping[str, Any], params: Mapping[str, Any]) -> None:
        """Raise RuleError where a shape is not as annotated ("shapes-agree"), or a stated rule does not hold."""
        try:
            env = self.bind(tensors, params)
        except dims.ShapeMismatch as e:
            raise RuleError("shapes-agree", str(e)) from e
        self.check_rules(env)

    def derive(self, d: Draw) -> dict[str, Any]:
        """Valid arguments: dims first, in order of appearance, parameters when first needed."""
        if self.drawer is not None:
            return self.drawer(d)
        env: dict[str, Any] = dict(d.fixed)
        out: dict[str, Any] = {}
        full: dict[str, tuple[int, ...]] = {}
        given: dict[str, list[tuple[int, ...]]] = {}
        for name, optional, variadic, tokens, whole, least in self._plan:
            if optional and (name not in d.version.slots_of or d.bool()):
                continue
            if whole is not None and whole not in env:
                env[whole] = full[whole] = known = d.shape(least, self.max_rank)
                out[name] = T(known)
            elif variadic:
                out[name] = [T(self._shape(tokens, d, env, full, given)) for _ in range(d.int(1, 4))]
            elif len(tokens) == 1:
                out[name] = T(self._token(tokens[0], 1, d, env, full, given))
            else:
                out[name] = T(self._shape(tokens, d, env, full, given))
        if self.params:
            for b, shapes in given.items():  # the drawn operands decide what they broadcast to
                env[b] = dims.broadcast(*shapes)
            for name, p in self.params.items():
                if name not in env:
                    env[name] = p.draw(d, env)
                out[name] = env[name]
        return out

    def _shape(
        self,
        tokens: tuple[dims.Token, ...],
        d: Draw,
        env: dict[str, Any],
        full: dict[str, tuple[int, ...]],
        given: dict[str, list[tuple[int, ...]]],
    ) -> tuple[int, ...]:
        shape: tuple[int, ...] = ()
        for t in tokens:
            shape += self._token(t, len(tokens), d, env, full, given)
        return shape

    @cached_property
    def _plan(self) -> list[tuple[str, bool, bool, tuple[dims.Token, ...], str | None, int]]:
        """Last, of most tensors: the one name that their whole shape has, and the least rank of it."""
        plan = []
        for name, a in self.tensors.items():
            t = a.tokens[0] if len(a.tokens) == 1 and not a.variadic else None
            whole = t.name if t is not None and t.many and not t.broadcast else None
            least = max(1 if whole in self._needs else 0, self.min_rank)
            plan.append((name, a.optional, a.variadic, a.tokens, whole, least))
        return plan

    @cached_property
    def _needs(self) -> frozenset[str]:
        return frozenset(p.needs_rank for p in self.params.values() if p.needs_rank)

    def _token(
        self,
        t: dims.Token,
        count: int,
        d: Draw,
        env: dict[str, Any],
        full: dict[str, tuple[int, ...]],
        given: dict[str, list[tuple[int, ...]]],
    ) -> tuple[int, ...]:
        """Extents that one token stands for, drawn when its name is new."""
        name = t.name
        if name is None:
            self._params_for(t, d, env)
            v = dims.evaluate(t.code, env)
            return tuple(v) if t.many else (v,)
        if not t.many:
            if name not in env:
                env[name] = d.dim()
            return (env[name],)
        known = full.get(name) if t.broadcast else env.get(name)
        if known is None:
            least = 1 if name in self._needs else 0
            if count == 1:
                known = d.shape(max(least, self.min_rank), self.max_rank)
            else:  # the other tokens are axes of the same tensor: its rank is what the limits speak of
                hi = d.max_rank if self.max_rank is None else min(self.max_rank, d.max_rank)
                known = d.part(max(least, max(self.min_rank, d.min_rank) - count + 1), hi - count + 1)
            env[name] = full[name] = known
        if not t.broadcast:
            return known
        known = d.broadcast_from(known)
        if self.params:
            given.setdefault(name, []).append(known)
        return known

    def _params_for(self, t: dims.Token, d: Draw, env: dict[str, Any]) -> None:
        for name in t.code.co_names:
            if name in self.params and name not in env:
                env[name] = self.params[name].draw(d, env)


def _resolve(annotation: Any, fn: Callable[..., Any]) -> Any:
    return eval(annotation, fn.__globals__) if isinstance(annotation, str) else annotation


def semantics(
    *,
    source: str,
    error: Tolerance | tuple[Tolerance, ...] | Callable[[], Tolerance] = exact,
    rules: dict[str, Any] | None = None,
    draw: DrawFn | None = None,
    data: Mapping[str, Any] | tuple[str, ...] | None = None,
    min_rank: int = 0,
    max_rank: int | None = None,
    ambiguous: Callable[..., str | None] | None = None,
) -> Callable[[Callable[..., Any]], Semantics]:
    """Declare a meaning.

    source: document, section and version that it was read from.
    error: the tolerance of its outputs.
    rules: stated rules, name -> expression over dims and params.
    draw: a generator where the grammar cannot say it.
    data: recipes to fill inputs with: a tuple for all, or {tensor: tuple}.
    min_rank, max_rank: of the variadic dims.
    ambiguous: ``fn(inputs, params) -> reason or None``: the spec gives no single answer for these values.

    Raises TypeError for a parameter without annotation.
    """

    def wrap(fn: Callable[..., Any]) -> Semantics:
        tensors: dict[str, Tensor] = {}
        params: dict[str, Param] = {}
        defaults: dict[str, Any] = {}
        sig = inspect.signature(fn)
        for p in sig.parameters.values():
            if p.annotation is p.empty:
                raise TypeError(f"{fn.__name__}: parameter {p.name} has no annotation")
            ann = stated(_resolve(p.annotation, fn))
            if ann is None:
                raise TypeError(
                    f"{fn.__name__}: {p.name}: expected a tensor or parameter annotation, got {p.annotation!r}"
                )
            if isinstance(ann, Tensor):
                tensors[p.name] = replace(ann, optional=ann.optional or p.default is None)
                continue
            params[p.name] = ann
            if p.default is not p.empty:
                defaults[p.name] = p.default
        returned = _resolve(sig.return_annotation, fn)
        each = get_args(returned) if get_origin(returned) is tuple else (returned,)
        ret = tuple(r for r in each if isinstance(r, Tensor))
        classes = error if isinstance(error, (Tolerance, tuple)) else error()
        s = Semantics(
            fn,
            fn.__name__,
            tensors,
            params,
            defaults,
            ret if len(ret) == len(each) else None,
            classes,
            source,
            rules or {},
            draw,
            data,
            {},
            min_rank,
            max_rank,
            ambiguous,
        )
        s.__doc__ = fn.__doc__
        return s

    return wrap
