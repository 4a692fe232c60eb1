"""Comparison of two object graphs that ought to have come out the same.

Walks both sides at once and keeps a one-to-one map of the objects met, so that not only values but
*identity* is compared: two names for one object on one side must be two names for one object on the
other, and likewise for tensors that share storage. Knows nothing of graphlift.
"""

from __future__ import annotations

import copyreg
import functools
import itertools
import types
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import Any

import torch

#: Objects without an identity that a program could count on.
ATOMS: frozenset[type] = frozenset(
    {
        bool,
        int,
        float,
        complex,
        str,
        bytes,
        type(None),
        type(...),
        type(NotImplemented),
        torch.dtype,
        torch.device,
        torch.layout,
        torch.memory_format,
        range,
        types.CodeType,
    }
)

#: Shared by both sides, never copied: they must be the very same object.
SHARED = (
    type,
    types.ModuleType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    torch._ops.OpOverload,
)

#: How many values are taken out of an iterator to compare it.
DRAIN = 1000


class Comparison:
    """Differences between an expected and an actual object graph.

    Attributes:
        differences: one sentence for each, with the path that leads there.
        tolerance: relative and absolute tolerance for floating tensors; 0 demands equality (nan = nan).
    """

    def __init__(self, tolerance: float = 0.0) -> None:
        self.differences: list[str] = []
        self.tolerance = tolerance
        self._partner: dict[int, Any] = {}
        self._partner_back: dict[int, Any] = {}
        self._storages: dict[int, int] = {}
        self._storages_back: dict[int, int] = {}
        self._kept: list[Any] = []  # identities are good only while the objects live

    def differ(self, path: str, text: str) -> None:
        """Note a difference."""
        self.differences.append(f"{path}: {text}")

    def compare(self, expected: Any, actual: Any, path: str) -> None:
        """Compare what hangs below `path` on both sides."""
        if type(expected) in ATOMS:
            self._atoms(expected, actual, path)
        elif isinstance(expected, SHARED) and expected is actual:
            return
        elif not self._same_kind(expected, actual):
            self.differ(path, f"expected a {kind(expected)}, got a {kind(actual)}")
        elif self._pair(expected, actual, path):
            self._contents(expected, actual, path)

    def _atoms(self, expected: Any, actual: Any, path: str) -> None:
        same = type(expected) is type(actual) and (
            # By text, so that -0.0 and nan are what they are.
            repr(expected) == repr(actual) if isinstance(expected, float | complex) else expected == actual
        )
        if not same:
            self.differ(path, f"expected {short(expected)}, got {short(actual)}")

    def _same_kind(self, expected: Any, actual: Any) -> bool:
        left, right = type(expected), type(actual)
        if left is right:
            return True
        # A class made by the program exists once on each side; it is one class by name.
        return "<locals>" in left.__qualname__ and left.__qualname__ == right.__qualname__

    def _pair(self, expected: Any, actual: Any, path: str) -> bool:
        """Make the two partners; True when their contents are still to be compared."""
        if _is_constant(expected):
            return True
        left, right = id(expected), id(actual)
        known = left in self._partner
        if known or right in self._partner_back:
            if self._partner.get(left) is not actual or self._partner_back.get(right) is not expected:
                self.differ(path, f"this {kind(actual)} is another object than expected (identity)")
            return False
        self._partner[left] = actual
        self._partner_back[right] = expected
        self._kept += (expected, actual)
        return True

    def _contents(self, expected: Any, actual: Any, path: str) -> None:
        if isinstance(expected, torch.Tensor):
            self._tensors(expected, actual, path)
            return
        for base, method in _BY_TYPE:
            if isinstance(expected, base):
                method(self, expected, actual, path)
                break
        else:
            if not self._attributes(expected, actual, path) and not equal(expected, actual):
                self.differ(path, f"expected {short(expected)}, got {short(actual)}")
            return
        if type(expected) not in _PLAIN:
            self._attributes(expected, actual, path)

    # --- tensors -------------------------------------------------------------------------------

    def _tensors(self, expected: torch.Tensor, actual: torch.Tensor, path: str) -> None:
        for name in ("dtype", "device", "layout", "shape", "requires_grad", "is_leaf"):
            left, right = getattr(expected, name), getattr(actual, name)
            if left != right:
                self.differ(path, f"tensor's {name} is {right}, expected {left}")
                if name in {"dtype", "shape", "layout"}:
                    return
        if expected.is_inference() != actual.is_inference():
            self.differ(path, "one is an inference tensor, the other is not")
        if (expected.grad_fn is None) != (actual.grad_fn is None):
            self.differ(path, f"grad_fn is {actual.grad_fn}, expected {expected.grad_fn}")
        if expected.layout is torch.strided:
            self._strided(expected, actual, path)
        self._values(expected, actual, path)
        if expected.is_leaf and (expected.grad is not None or actual.grad is not None):
            self.compare(expected.grad, actual.grad, f"{path}.grad")
        self.compare(dict(expected.__dict__), dict(actual.__dict__), f"{path}.__dict__")

    def _strided(self, expected: torch.Tensor, actual: torch.Tensor, path: str) -> None:
        if expected.stride() != actual.stride():
            self.differ(path, f"tensor's stride is {actual.stride()}, expected {expected.stride()}")
        if expected.storage_offset() != actual.storage_offset():
            text = f"storage offset is {actual.storage_offset()}, expected {expected.storage_offset()}"
            self.differ(path, text)
        left, right = expected.untyped_storage()._cdata, actual.untyped_storage()._cdata
        if self._storages.setdefault(left, right) != right:
            self.differ(path, "does not share storage with the tensors that it ought to share it with")
        elif self._storages_back.setdefault(right, left) != left:
            self.differ(path, "shares storage with a tensor that it ought not to share it with")

    def _values(self, expected: torch.Tensor, actual: torch.Tensor, path: str) -> None:
        if expected.device.type == "meta":
            return
        try:
            torch.testing.assert_close(
                actual.detach(),
                expected.detach(),
                rtol=self.tolerance,
                atol=self.tolerance,
                equal_nan=True,
            )
        except AssertionError as error:
            self.differ(path, f"tensor's values differ\n{error}")

    # --- containers ----------------------------------------------------------------------------

    def _sequences(self, expected: Any, actual: Any, path: str) -> None:
        if len(expected) != len(actual):
            self.differ(path, f"length is {len(actual)}, expected {len(expected)}: {short(actual)}")
            return
        for index, (left, right) in enumerate(zip(_items(expected), _items(actual), strict=True)):
            self.compare(left, right, f"{path}[{index}]")

    def _dicts(self, expected: dict[Any, Any], actual: dict[Any, Any], path: str) -> None:
        kind: Any = (
            OrderedDict if isinstance(expected, OrderedDict) else dict
        )  # whose order is not the storage's
        left, right = list(kind.items(expected)), list(kind.items(actual))
        if len(left) != len(right):
            self.differ(path, f"keys are {short(list(actual))}, expected {short(list(expected))}")
            return
        for (left_key, left_value), (right_key, right_value) in zip(left, right, strict=True):
            self.compare(left_key, right_key, f"{path}, key {short(left_key)}")
            self.compare(left_value, right_value, f"{path}[{short(left_key)}]")

    def _sets(self, expected: Any, actual: Any, path: str) -> None:
        if len(expected) != len(actual):
            self.differ(path, f"expected {short(expected)}, got {short(actual)}")
            return
        loose = []
        for item in expected:
            if type(item) in ATOMS or isinstance(item, (*SHARED, tuple)):
                if item not in actual:
                    self.differ(path, f"{short(item)} is missing in {short(actual)}")
            elif (partner := self._partner.get(id(item))) is None:
                loose.append(item)
            elif partner not in actual:
                self.differ(path, f"{short(item)} is missing in {short(actual)}")
        others = [item for item in actual if type(item) not in ATOMS and id(item) not in self._partner_back]
        for left, right in zip(loose, others, strict=False):
            self.compare(left, right, f"{path}, item {short(left)}")

    def _mapping_proxies(self, expected: Any, actual: Any, path: str) -> None:
        self._dicts(dict(expected), dict(actual), path)

    def _iterators(self, expected: Any, actual: Any, path: str) -> None:
        left, right = take(expected), take(actual)
        self.compare(left, right, f"list({path})")

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
        self.compare(expected.args, actual.args, f"{path}.args")
        for name in ("__cause__", "__context__"):
            self.compare(getattr(expected, name), getattr(actual, name), f"{path}.{name}")

    def _slices(self, expected: Any, actual: Any, path: str) -> None:
        for name in ("start", "stop", "step"):
            self.compare(getattr(expected, name), getattr(actual, name), f"{path}.{name}")

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
            for name in left:
                if name in right:
                    self.compare(left[name], right[name], f"{path}.{name}")
        for name in slot_names(type(expected)):
            found = True
            self.compare(slot(expected, name), slot(actual, name), f"{path}.{name}")
        return found


Compare = Callable[[Comparison, Any, Any, str], None]

_ITERATORS: tuple[type, ...] = (
    types.GeneratorType,
    type(iter([])),
    type(iter(())),
    type(iter({})),
    type(iter({}.values())),
    type(iter({}.items())),
    type(iter(set())),
    type(iter(range(0))),
    type(iter("")),
    type(reversed([])),
    zip,
    map,
    filter,
    enumerate,
    itertools.chain,
    itertools.islice,
)

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
    (types.MappingProxyType, Comparison._mapping_proxies),
    (_ITERATORS, Comparison._iterators),
    (type, Comparison._classes),
    (types.BuiltinFunctionType, Comparison._builtins),
    (SHARED, Comparison._identical),
)

#: Types whose instances carry nothing beside what their entry in the table compares.
_PLAIN: frozenset[type] = frozenset(
    {
        types.BuiltinFunctionType,
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
    | set(_ITERATORS)
)


def _items(sequence: list[Any] | tuple[Any, ...] | deque[Any]) -> Iterator[Any]:
    """Items of a list, tuple or deque from the storage beneath, whatever a subclass says."""
    if isinstance(sequence, list):
        return list.__iter__(sequence)
    if isinstance(sequence, tuple):
        return tuple.__iter__(sequence)
    return deque.__iter__(sequence)


def _is_constant(value: Any) -> bool:
    """Whether a value is an atom or made of atoms alone, so that its identity means nothing."""
    if type(value) in (tuple, frozenset, torch.Size):
        return all(map(_is_constant, value))
    return type(value) in ATOMS or isinstance(value, type | types.ModuleType)


def take(iterator: Any) -> list[Any]:
    """What an iterator would give, up to a limit; an error it raises stands for the rest."""
    taken: list[Any] = []
    try:
        taken.extend(itertools.islice(iterator, DRAIN))
    except Exception as error:
        taken.append(error)
    return taken


def equal(expected: Any, actual: Any) -> bool:
    """Equality of two objects of which nothing else is known."""
    if expected is actual:
        return True
    plain: Any = object.__eq__
    if type(expected).__eq__ is plain:
        return True  # bare objects: that they correspond is all there is to compare
    same = expected == actual
    return bool(same.all()) if hasattr(same, "all") else bool(same)


def instance_dict(value: Any) -> dict[str, Any] | None:
    """The instance dictionary, or None."""
    try:
        found = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return found if isinstance(found, dict) else None


def slot_names(cls: type) -> list[str]:
    """Names of the slots that a class and its bases declare."""
    names: list[str] = copyreg._slotnames(cls)  # type: ignore[attr-defined]
    return names


def slot(value: Any, name: str) -> Any:
    """A slot's value; an empty one compares equal to an empty one."""
    try:
        return object.__getattribute__(value, name)
    except AttributeError:
        return "<empty slot>"


def kind(value: Any) -> str:
    """A value's class, for messages."""
    return type(value).__qualname__


def short(value: Any, limit: int = 120) -> str:
    """A value's text, not too long."""
    try:
        text = repr(value)
    except Exception as error:
        text = f"<{kind(value)}: {error}>"
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
