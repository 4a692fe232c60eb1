"""Symbolic sizes and numbers of one capture: the shape environment, its fake mode, and its guards as ours.

Torch's `ShapeEnv` does the reasoning; imported when the first symbol is needed. What it assumed comes out as
postfix expressions over our sources (see the guard kind ``expression``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import torch
from torch._guards import Source as TorchSource

from graphlift import _C
from graphlift.graph_value import LARGEST_FLOAT, LARGEST_INT, CannotPropagate, SymValue
from graphlift.meta_propagation.fakes import with_history
from graphlift.output_graph.postfix import Untranslatable, postfix, takes_no_step
from graphlift.sources import Source

Items = tuple[Any, ...]


@dataclasses.dataclass(frozen=True)
class _Place(TorchSource):
    """One of our sources as torch wants to see it."""

    place: Source

    @property
    def guard_source(self) -> Any:
        """Torch only asks whether it is a module's; none is, here."""
        from torch._guards import GuardSource

        return GuardSource.LOCAL

    @property
    def _name_template(self) -> str:
        return self.place.name()


@dataclasses.dataclass(frozen=True)
class _Computed(TorchSource):
    """A number that is computed, as torch wants to see it."""

    title: str

    @property
    def guard_source(self) -> Any:
        """As for `_Place`."""
        from torch._guards import GuardSource

        return GuardSource.LOCAL

    @property
    def _name_template(self) -> str:
        return self.title


if callable(vars(TorchSource).get("name")):  # until torch 2.9 the name was a method

    def _name(self: _Place) -> str:
        return self.place.name()

    def _title(self: _Computed) -> str:
        return self.title

    _Place.name = _name  # type: ignore[assignment, method-assign]
    _Computed.name = _title  # type: ignore[assignment, method-assign]


class Symbols:
    """The symbols of one capture.

    Attributes:
        env: the `ShapeEnv`.
        mode: the `FakeTensorMode` in which every dynamic operation is made.
    """

    def __init__(self) -> None:
        from torch._subclasses.fake_tensor import FakeTensorMode
        from torch.fx.experimental.symbolic_shapes import ShapeEnv

        self.env: Final[Any] = ShapeEnv()
        self.mode: Final[Any] = FakeTensorMode(shape_env=self.env, static_shapes=True)
        #: Symbol -> the input that it is, in the words of guards.
        self._inputs: dict[Any, Items] = {}
        self._floats: dict[Any, float] = {}
        #: What was assumed of exact expressions.
        self._assumed: dict[Items, None] = {}
        #: What inputs' strides and offsets are in terms of symbols: (input, expression).
        self._derived: list[tuple[Items, Any]] = []

    # --- making symbols ----------------------------------------------------------------------

    def tensor(self, real: torch.Tensor, source: Source, dynamic: Sequence[bool]) -> Any:
        """A fake tensor of an input, its sizes symbolic where `dynamic` says so."""
        from torch.fx.experimental.symbolic_shapes import DimDynamic, StatelessSymbolicContext

        sizes = [DimDynamic.DYNAMIC if wanted else DimDynamic.STATIC for wanted in dynamic]
        context: Any = StatelessSymbolicContext(dynamic_sizes=sizes)
        # Its base or gradient would have symbols of their own.
        is_leaf = _C.read_metadata(real)[5]  # a view that is asked itself brings its history up to date
        alone = real._base is not None or (is_leaf and real.grad is not None)
        fake = self.mode.from_tensor(
            real.detach() if alone else real,
            static_shapes=False,
            source=_Place(source),
            symbolic_context=context,
        )
        if alone:
            fake = with_history(self.mode, fake, real.requires_grad, is_leaf)
            if type(real) is torch.nn.Parameter:
                fake._is_param = True
        numbers: list[tuple[Items, Any]] = [
            *((("size", source, dim), size) for dim, size in enumerate(fake.shape)),
            *((("stride", source, dim), stride) for dim, stride in enumerate(fake.stride())),
            (("offset", source), fake.storage_offset()),
        ]
        symbolic = [(name, number) for name, number in numbers if type(number) is not int]
        # A number may be made of one that stands behind it.
        for name, number in sorted(symbolic, key=lambda item: not item[1].node.expr.is_Symbol):
            self._met(name, number)
        return fake

    def number(self, value: float, source: Source) -> Any:
        """A symbolic int or float that is `value` in this capture."""
        from torch.fx.experimental.symbolic_shapes import DimDynamic

        place = _Place(source)
        symbol = self.env.create_unspecified_symbol(value, place, DimDynamic.DYNAMIC)
        if type(value) is int:
            self._inputs.setdefault(symbol, ("int", source))
            return self.env.create_symintnode(symbol, hint=value, source=place)
        self._inputs.setdefault(symbol, ("float", source))
        self._floats[symbol] = value
        return self.env.create_symfloatnode(symbol, hint=value, source=place)

    def _met(self, name: Items, number: Any) -> None:
        """Note which symbol an input's number is, or what it is made of."""
        expression = number.node.expr
        if expression.is_Symbol and expression not in self._inputs:
            self._inputs[expression] = name
        elif not expression.is_Integer:
            if not set(expression.free_symbols) <= set(self._inputs):
                raise CannotPropagate(f"a symbolic {name[0]} that is no input")
            self._derived.append((name, expression))
        else:
            self._derived.append((name, expression))

    # --- assumptions -------------------------------------------------------------------------

    def in_postfix(self, expression: Any) -> Items:
        """An expression of torch's in postfix form; raises `Untranslatable`."""
        return postfix(expression, self._inputs)

    def hint_of(self, name: Items) -> Any:
        """What an input is in this capture."""
        return self._hint(next(symbol for symbol, known in self._inputs.items() if known == name))

    def assume(self, items: Items) -> None:
        """Assume that an expression over inputs is true."""
        self._assumed[items] = None

    def fix(self, number: SymValue) -> None:
        """Assume that every input that a number is made of is what it is in this capture."""
        for items in self._as_they_are(number.sym.node.expr.free_symbols):
            self.assume(items)

    def computed(self, value: float) -> Any:
        """A symbolic float for a result that torch cannot compute; `stands_for` tells how it came about."""
        from torch.fx.experimental.symbolic_shapes import DimDynamic

        place = _Computed(f"computed_{len(self._floats)}")
        symbol = self.env.create_unspecified_symbol(value, place, DimDynamic.DYNAMIC)
        self._floats[symbol] = value
        return self.env.create_symfloatnode(symbol, hint=value, source=place)

    def stands_for(self, number: SymValue, items: Items) -> None:
        """The expression behind a number that `computed` gave; nothing to do for others."""
        expression = number.sym.node.expr
        if expression.is_Symbol:
            self._inputs.setdefault(expression, items)

    # --- guards ------------------------------------------------------------------------------

    def guards(self) -> list[Items]:
        """Everything the environment assumed so far, each a postfix expression that must be true."""
        found = [self._derivation(name, expression) for name, expression in self._derived]
        found += [*self._ranges(), *self._ordinary(), *self._assumed]
        for guard in self.env.guards:
            found += self._translated(guard.expr)
        return list(dict.fromkeys(found))

    def _derivation(self, name: Items, expression: Any) -> Items:
        return (name, *postfix(expression, self._inputs), "==")

    def _ranges(self) -> list[Items]:
        """Bounds that held from the beginning: sizes of one and none were kept apart."""
        return [(name, 2, ">=") for symbol, name in self._inputs.items() if self._starts_at_two(symbol)]

    def _ordinary(self) -> list[Items]:
        """The numbers among the inputs are of a size that operations can take."""
        most = {"int": LARGEST_INT, "float": LARGEST_FLOAT}
        return [
            (name, most[name[0]], "<=", name, -most[name[0]], ">=", "and")
            for name in self._inputs.values()
            if name[0] in most
        ]

    def is_ordinary(self, number: Any) -> bool:
        """Whether a symbolic number is of that size whatever its inputs are."""
        return isinstance(number, torch.SymBool) or self._is_bounded(number.node.expr)

    def is_given(self, number: Any) -> bool:
        """Whether a symbolic number depends on others than sizes and strides."""
        return any(map(self._is_number, number.node.expr.free_symbols))

    def _is_number(self, symbol: Any) -> bool:
        """Whether a symbol is an int or float of the program, or computed from these."""
        name = self._inputs[symbol]
        return not isinstance(name[0], str) or name[0] in ("int", "float")

    def _is_input(self, term: Any) -> bool:
        return bool(term.is_Symbol) and isinstance(self._inputs[term][0], str)

    def _is_bounded(self, expression: Any) -> bool:
        if expression.is_Symbol:
            return self._is_input(expression)
        if not any(map(self._is_number, expression.free_symbols)):
            return True
        name = type(expression).__name__
        if name in ("FloorDiv", "PythonMod", "Mod", "IntTrueDiv"):
            return self._is_bounded(expression.args[0]) and bool(expression.args[1].is_Integer)
        if name in ("Max", "Min", "ToFloat", "Abs"):
            return all(map(self._is_bounded, expression.args))
        weights = expression.as_coefficients_dict()
        return all(self._is_input(term) or term.is_Integer for term in weights) and self._is_light(weights)

    def _is_light(self, weights: Mapping[Any, Any]) -> bool:
        """Whether a weighted sum of inputs, and perhaps an int, stays small."""
        total = sum(
            abs(weight) * (1 if term.is_Symbol else abs(term) / LARGEST_INT)
            for term, weight in weights.items()
        )
        floats = any(term in self._floats for term in weights)
        return bool(total <= (1 if floats else 3))

    def _starts_at_two(self, symbol: Any) -> bool:
        return bool(self.env.var_to_range[symbol].lower >= 2)

    def _translated(self, expression: Any) -> list[Items]:
        try:
            if not takes_no_step(expression, self._floats):
                raise Untranslatable(str(expression))
            return [postfix(expression, self._inputs)]
        except Untranslatable:
            # Then every symbol in it stays what it was.
            return self._as_they_are(expression.free_symbols)

    def _as_they_are(self, symbols: Iterable[Any]) -> list[Items]:
        """That symbols are what they are in this capture."""
        names = [self._inputs[symbol] for symbol in sorted(symbols, key=str)]
        inputs = [name for name in names if isinstance(name[0], str)]
        for name in names:
            if not isinstance(name[0], str):
                inputs += [item for item in name if isinstance(item, tuple)]
        return [(name, self.hint_of(name), "==") for name in inputs]

    def _hint(self, symbol: Any) -> Any:
        hint = self._floats[symbol] if symbol in self._floats else self._values()[symbol]
        return float(hint) if self._inputs[symbol][0] == "float" else int(hint)

    def _values(self) -> dict[Any, Any]:
        """The environment's table of present values, whose name differs between versions."""
        table: Any = getattr(self.env, "backed_var_to_val", None)
        found: dict[Any, Any] = self.env.var_to_val if table is None else table
        return found

    def forget_floats(self) -> None:
        """Take symbolic floats out of the environment, where a compiler would look for their use."""
        values = self._values()
        for symbol in self._floats:
            values.pop(symbol, None)
