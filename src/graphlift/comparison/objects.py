"""Comparison of two object graphs that ought to have come out the same.

Walks both sides at once and keeps a one-to-one map of the objects met, so that not only values but
*identity* is compared: two names for one object on one side must be two names for one object on the
other, and likewise for tensors that share storage. Knows nothing of graphlift.
"""

from __future__ import annotations

import functools
import math
import types
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable
from itertools import islice
from typing import Any

import torch

from graphlift.comparison.reading import (
    ATOMS,
    ITERATORS,
    SHARED,
    equal,
    instance_dict,
    is_constant,
    is_lasting,
    items,
    kind,
    members,
    reduced,
    short,
    slot,
    slot_names,
    take,
    without_addresses,
)
from graphlift.comparison.tensors import value_difference

#: Where a module keeps what it shows as attributes.
_OF_MODULES = ("_parameters", "_buffers", "_modules")


class Comparison:
    """Differences between an expected and an actual object graph.

    Attributes:
        differences: one sentence for each, with the path that leads there.
        uncompared: paths of values that cannot be compared, with the reason.
        tolerance: relative and absolute tolerance for floating numbers; 0 demands equality (nan = nan),
            None stands for the tolerances of `torch.testing`.
        consume: iterators are compared by what they give, which uses them up; else by their state.
        layout: strides and offsets count even where they cannot be told apart by an index.
        values: floating numbers of tensors count.
    """

    def __init__(
        self,
        tolerance: float | None = 0.0,
        *,
        consume: bool = True,
        layout: bool = True,
        values: bool = True,
    ) -> None:
        self.differences: list[str] = []
        self.uncompared: list[str] = []
        self.tolerance = tolerance
        self.consume = consume
        self.layout = layout
        self.values = values
        self._met: set[int] = set()
        self._where: dict[int, str] = {}
        self._partner: dict[int, Any] = {}
        self._partner_back: dict[int, Any] = {}
        self._storages: dict[int, int] = {}
        self._storages_back: dict[int, int] = {}
        self._kept: list[Any] = []  # identities are good only while the objects live

    def differ(self, path: str, text: str) -> None:
        """Note a difference."""
        self.differences.append(f"{path}: {text}")

    def expect(self, expected: Any, actual: Any) -> None:
        """Say beforehand which objects correspond; what they hold is compared when they are met."""
        self._partner[id(expected)] = actual
        self._partner_back[id(actual)] = expected
        self._kept += (expected, actual)

    def compare(self, expected: Any, actual: Any, path: str) -> None:
        """Compare what hangs below `path` on both sides."""
        if type(expected) in ATOMS:
            self._atoms(expected, actual, path)
        elif expected is actual and isinstance(expected, SHARED):
            return
        elif not self._same_kind(expected, actual):
            self.differ(path, f"expected a {kind(expected)}, got a {kind(actual)}")
        elif self._pair(expected, actual, path):
            self._contents(expected, actual, path)

    def _atoms(self, expected: Any, actual: Any, path: str) -> None:
        same = type(expected) is type(actual) and (
            # By text, so that -0.0 and nan are what they are.
            repr(expected) == repr(actual) or self._near(expected, actual)
            if isinstance(expected, float | complex)
            else expected == actual
        )
        if not same:
            self.differ(path, f"expected {short(expected)}, got {short(actual)}")

    def _near(self, expected: Any, actual: Any) -> bool:
        if self.tolerance is not None or type(expected) is not float:
            return False  # a number in Python is exact, unless it comes from tensors that need not be
        return math.isclose(expected, actual, rel_tol=1.3e-6, abs_tol=1e-5)

    def _same_kind(self, expected: Any, actual: Any) -> bool:
        left, right = type(expected), type(actual)
        if left is right or self._partner.get(id(left)) is right:
            return True
        # A class made by the program exists once on each side; it is one class by name.
        if left.__qualname__ != right.__qualname__ or left.__module__ != right.__module__:
            return False
        return not is_lasting(left) and not is_lasting(right)

    def _pair(self, expected: Any, actual: Any, path: str) -> bool:
        """Make the two partners; True when their contents are still to be compared."""
        if is_constant(expected):
            return True
        left, right = id(expected), id(actual)
        if left in self._partner or right in self._partner_back:
            if self._partner.get(left) is not actual or self._partner_back.get(right) is not expected:
                self.differ(path, self._wrong_object(expected, actual))
                return False
        else:
            self.expect(expected, actual)
        if left in self._met or left == right:
            return False
        self._met.add(left)
        self._where.setdefault(left, path)
        self._where.setdefault(right, path)
        return True

    def _wrong_object(self, expected: Any, actual: Any) -> str:
        """How an object is another one than expected, with the places where either was met before."""

        def name(value: Any) -> str:
            known = self._where.get(id(value))
            return f"the object that is {known}" if known else "an object of its own"

        return (
            f"this {kind(actual)} is another object than expected (identity): "
            f"expected {name(expected)}, got {name(actual)}"
        )

    def _contents(self, expected: Any, actual: Any, path: str) -> None:
        known = _BY_EXACT_TYPE.get(type(expected))
        if known is not None:
            known(self, expected, actual, path)
            return
        if isinstance(expected, torch.Tensor):
            self._tensors(expected, actual, path)
            return
        for base, method in _BY_TYPE:
            if isinstance(expected, base):
                method(self, expected, actual, path)
                break
        else:
            if not self._attributes(expected, actual, path):
                self._unknown(expected, actual, path)
            return
        if type(expected) not in _PLAIN:
            self._attributes(expected, actual, path)

    def _unknown(self, expected: Any, actual: Any, path: str) -> None:
        """Objects that show nothing of themselves, unless they can be asked whether they are equal."""
        try:
            same = equal(expected, actual)
        except Exception as error:
            self.uncompared.append(f"{path}: {error!r}")
            return
        if not same:
            self.differ(path, f"expected {short(expected)}, got {short(actual)}")

    # --- tensors -------------------------------------------------------------------------------

    def _tensors(self, expected: torch.Tensor, actual: torch.Tensor, path: str) -> None:
        for name in ("dtype", "device", "layout", "shape", "requires_grad"):
            left, right = getattr(expected, name), getattr(actual, name)
            if left != right:
                self.differ(path, f"tensor's {name} is {right}, expected {left}")
                if name in {"dtype", "shape", "layout"}:
                    return
        if expected.is_inference() != actual.is_inference():
            self.differ(path, "one is an inference tensor, the other is not")
        left, right = _history(expected), _history(actual)
        if left != right:
            self.differ(path, f"history is {right}, expected {left}")
        if expected.layout is torch.strided:
            self._strided(expected, actual, path)
        self._values(expected, actual, path)
        if left == "leaf" and (expected.grad is not None or actual.grad is not None):
            self.compare(expected.grad, actual.grad, f"{path}.grad")
        self.compare(dict(expected.__dict__), dict(actual.__dict__), f"{path}.__dict__")

    def _strided(self, expected: torch.Tensor, actual: torch.Tensor, path: str) -> None:
        if self._strides(expected) != self._strides(actual):
            self.differ(path, f"tensor's stride is {actual.stride()}, expected {expected.stride()}")
        if expected.storage_offset() != actual.storage_offset() and self.layout:
            text = f"storage offset is {actual.storage_offset()}, expected {expected.storage_offset()}"
            self.differ(path, text)
        left, right = expected.untyped_storage()._cdata, actual.untyped_storage()._cdata
        if self._storages.setdefault(left, right) != right:
            self.differ(path, "does not share storage with the tensors that it ought to share it with")
        elif self._storages_back.setdefault(right, left) != left:
            self.differ(path, "shares storage with a tensor that it ought not to share it with")

    def _strides(self, tensor: torch.Tensor) -> tuple[int, ...]:
        if self.layout:
            return tensor.stride()
        if tensor.numel() == 0:
            return ()
        return tuple(step for step, size in zip(tensor.stride(), tensor.shape, strict=True) if size > 1)

    def _values(self, expected: torch.Tensor, actual: torch.Tensor, path: str) -> None:
        if expected.device.type == "meta" or not self.values:
            return
        try:
            found = value_difference(expected, actual, self.tolerance)
        except Exception as error:
            self.uncompared.append(f"{path}: {error}")
            return
        if found is not None:
            self.differ(path + found[0], found[1])

    # --- containers ----------------------------------------------------------------------------

    def _sequences(self, expected: Any, actual: Any, path: str) -> None:
        left, right = list(items(expected)), list(items(actual))
        if len(left) != len(right):
            text = (
                f"length is {len(right)}, expected {len(left)}: {short(actual)}, expected {short(expected)}"
            )
            self.differ(path, text)
            return
        for index, (one, other) in enumerate(zip(left, right, strict=True)):
            self.compare(one, other, f"{path}[{index}]")

    def _dicts(self, expected: dict[Any, Any], actual: dict[Any, Any], path: str) -> None:
        kind: Any = (
            OrderedDict if isinstance(expected, OrderedDict) else dict
        )  # whose order is not the storage's
        left, right = list(kind.items(expected)), list(kind.items(actual))
        if len(left) != len(right):
            self.differ(path, f"keys are {short(list(actual))}, expected {short(list(expected))}")
            return
        for (left_key, left_value), (right_key, right_value) in zip(left, right, strict=True):
            name = short(left_key)
            if left_key is not right_key or type(left_key) is not str:
                self.compare(left_key, right_key, f"{path}, key {name}")
            self.compare(left_value, right_value, f"{path}[{name}]")

    def _sets(self, expected: Any, actual: Any, path: str) -> None:
        left, right = members(expected), members(actual)
        if len(left) != len(right):
            self.differ(path, f"expected {short(expected)}, got {short(actual)}")
            return
        there, loose = {id(item) for item in right}, []
        known = list(filter(_by_value, right))
        for item in left:
            if _by_value(item):
                if item not in known:
                    self.differ(path, f"{short(item)} is missing in {short(actual)}")
            elif (partner := self._partner.get(id(item))) is None:
                loose.append(item)
            elif id(partner) not in there:
                self.differ(path, f"{short(item)} is missing in {short(actual)}")
            else:
                self.compare(item, partner, f"{path}, item {short(item)}")
        others = [item for item in right if not _by_value(item) and id(item) not in self._partner_back]
        # Their order follows from addresses.
        for one, other in zip(sorted(loose, key=_looks), sorted(others, key=_looks), strict=False):
            self.compare(one, other, f"{path}, item {short(one)}")

    def _views(self, expected: Any, actual: Any, path: str) -> None:
        self.compare(list(expected), list(actual), f"list({path})")

    def _mapping_proxies(self, expected: Any, actual: Any, path: str) -> None:
        self._dicts(dict(expected), dict(actual), path)

    def _iterators(self, expected: Any, actual: Any, path: str) -> None:
        if self.consume:
            self.compare(take(expected), take(actual), f"list({path})")
        elif isinstance(expected, types.GeneratorType):
            self._generators(expected, actual, path)
        else:
            self.compare(reduced(expected), reduced(actual), f"state of {path}")

    def _generators(self, expected: Any, actual: Any, path: str) -> None:
        """Compare where two generators stand, without moving them.

        One that became real while it waited has a code of its own, with the places of the user's, and the
        locals that may still be read.
        """
        left, right = expected.gi_frame, actual.gi_frame
        same = expected.gi_code == actual.gi_code
        if not same and _written_at(expected.gi_code) != _written_at(actual.gi_code):
            self.differ(path, f"expected {expected.__qualname__}, got {actual.__qualname__} (code differs)")
        elif left is None or right is None:
            if left is not right:
                self.differ(path, "one of two generators has gone on further than the other")
        elif left.f_lasti != right.f_lasti if same else _stands_at(left) != _stands_at(right):
            self.differ(path, "one of two generators has gone on further than the other")
        else:
            there = dict(right.f_locals)
            here = {name: value for name, value in left.f_locals.items() if same or name in there}
            if not same:
                there = {name: there[name] for name in (*here, *(there.keys() - here.keys()))}
            self.compare(here, there, f"locals of {path}")

    # --- callables and the rest ----------------------------------------------------------------

    def _functions(self, expected: Any, actual: Any, path: str) -> None:
        if expected is actual:
            return
        if expected.__code__ != actual.__code__:
            self.differ(path, f"expected {expected.__qualname__}, got {actual.__qualname__} (code differs)")
            return
        for name in ("__name__", "__qualname__", "__defaults__", "__kwdefaults__", "__dict__"):
            self.compare(getattr(expected, name), getattr(actual, name), f"{path}.{name}")
        self._sequences(expected.__closure__ or (), actual.__closure__ or (), f"{path}.__closure__")

    def _cells(self, expected: Any, actual: Any, path: str) -> None:
        for cell in (expected, actual):
            try:
                _ = cell.cell_contents
            except ValueError:  # an empty cell
                if expected != actual:
                    self.differ(path, "one of two cells is empty")
                return
        self.compare(expected.cell_contents, actual.cell_contents, f"{path}.cell_contents")

    def _methods(self, expected: Any, actual: Any, path: str) -> None:
        self.compare(expected.__func__, actual.__func__, f"{path}.__func__")
        self.compare(expected.__self__, actual.__self__, f"{path}.__self__")

    def _partials(self, expected: Any, actual: Any, path: str) -> None:
        for name in ("func", "args", "keywords"):
            self.compare(getattr(expected, name), getattr(actual, name), f"{path}.{name}")

    def _exceptions(self, expected: Any, actual: Any, path: str) -> None:
        left, right = (tuple(map(without_addresses, error.args)) for error in (expected, actual))
        self.compare(left, right, f"{path}.args")
        for name in ("__cause__", "__context__"):
            self.compare(getattr(expected, name), getattr(actual, name), f"{path}.{name}")

    def _references(self, expected: Any, actual: Any, path: str) -> None:
        self.compare(expected(), actual(), f"{path}()")

    def _slices(self, expected: Any, actual: Any, path: str) -> None:
        for name in ("start", "stop", "step"):
            self.compare(getattr(expected, name), getattr(actual, name), f"{path}.{name}")

    def _of_module(self, expected: Any, actual: Any, path: str, name: str) -> None:
        """Parameters, buffers or submodules, under the names by which a program knows them."""
        if type(expected) is not type(actual) or list(expected) != list(actual):
            self.compare(expected, actual, f"{path}.{name}")
        elif self._pair(expected, actual, f"{path}.{name}"):
            for key, value in expected.items():
                self.compare(value, actual[key], f"{path}[{key}]" if key.isdigit() else f"{path}.{key}")

    def _classes(self, expected: type, actual: type, path: str) -> None:
        if expected is not actual and expected.__qualname__ != actual.__qualname__:
            self.differ(path, f"expected class {expected.__qualname__}, got {actual.__qualname__}")

    def _builtins(self, expected: Any, actual: Any, path: str) -> None:
        # A bound method of a C type is a builtin function that carries its object.
        self.compare(expected.__name__, actual.__name__, f"{path}.__name__")
        self.compare(expected.__self__, actual.__self__, f"{path}.__self__")

    def _identical(self, expected: Any, actual: Any, path: str) -> None:
        if expected is not actual:
            self.differ(path, f"expected the same {kind(expected)} as before")

    def _attributes(self, expected: Any, actual: Any, path: str) -> bool:
        """Compare instance dictionary and slots; whether there was anything to compare."""
        found = False
        left, right = instance_dict(expected), instance_dict(actual)
        if left is not None and right is not None:
            found = True
            if set(left) != set(right):
                self.differ(path, f"attributes are {sorted(right)}, expected {sorted(left)}")
            is_module = isinstance(expected, torch.nn.Module)
            for name in left:
                if name not in right:
                    continue
                if is_module and name in _OF_MODULES:
                    self._of_module(left[name], right[name], path, name)
                else:
                    self.compare(left[name], right[name], f"{path}.{name}")
        for name in slot_names(type(expected)):
            found = True
            self.compare(slot(expected, name), slot(actual, name), f"{path}.{name}")
        return found


def _by_value(item: Any) -> bool:
    """Whether a member of a set is found on the other side by being equal; others may not be asked."""
    if isinstance(item, tuple):
        return all(map(_by_value, tuple.__iter__(item)))
    return type(item) in ATOMS or isinstance(item, SHARED)


def _looks(item: Any) -> tuple[str, str]:
    """What tells apart members of a set that are found by their identity."""
    value = repr(item.tolist()) if isinstance(item, torch.Tensor) and item.device.type != "meta" else ""
    return type(item).__qualname__, value


def _written_at(code: types.CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _stands_at(frame: types.FrameType) -> object:
    """The place in the text at which a frame waits."""
    return next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), None)


Compare = Callable[[Comparison, Any, Any, str], None]

_BY_TYPE: tuple[tuple[Any, Compare], ...] = (
    (dict, Comparison._dicts),
    ((list, tuple, deque), Comparison._sequences),
    ((set, frozenset), Comparison._sets),
    (types.FunctionType, Comparison._functions),
    (types.MethodType, Comparison._methods),
    (types.CellType, Comparison._cells),
    (functools.partial, Comparison._partials),
    (BaseException, Comparison._exceptions),
    (slice, Comparison._slices),
    (weakref.ref, Comparison._references),
    (types.MappingProxyType, Comparison._mapping_proxies),
    ((type({}.keys()), type({}.values()), type({}.items())), Comparison._views),
    (ITERATORS, Comparison._iterators),
    (type, Comparison._classes),
    ((types.BuiltinFunctionType, types.MethodWrapperType), Comparison._builtins),
    (SHARED, Comparison._identical),
)

#: Types whose instances carry nothing beside what their entry in the table compares.
_PLAIN: frozenset[type] = frozenset(
    {
        types.BuiltinFunctionType,
        types.MethodWrapperType,
        dict,
        list,
        tuple,
        deque,
        set,
        frozenset,
        slice,
        types.FunctionType,
        types.MethodType,
        types.CellType,
        type,
    }
    | set(ITERATORS)
)

#: What the table says of them, found at once.
_BY_EXACT_TYPE: dict[type, Compare] = {
    cls: next(method for base, method in _BY_TYPE if issubclass(cls, base)) for cls in _PLAIN
}


def _history(tensor: torch.Tensor) -> str:
    """What autograd knows of a tensor: that it is a leaf, that it is none, or why it will not say."""
    try:
        return "leaf" if tensor.is_leaf else "none" if tensor.grad_fn is None else "recorded"
    except RuntimeError as error:  # a view that a write to another one has made useless
        return str(error)
