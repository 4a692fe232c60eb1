"""Objects of pydantic and attrs as arguments, and made inside: read, written, checked, compared, copied."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
import torch
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    computed_field,
    field_validator,
)
from pydantic.dataclasses import dataclass

from graphlift.testing import check

X = torch.arange(4.0)

# --- pydantic -----------------------------------------------------------------------------------


class Options(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)

    scale: float = 2.0
    count: int = 3
    name: str = "a"
    weight: Any = None
    tags: list[int] = Field(default_factory=list)
    _hidden: int = PrivateAttr(default=4)

    @computed_field
    @property
    def double(self) -> float:
        return self.scale * 2

    @field_validator("count")
    @classmethod
    def _not_negative(cls, value: int) -> int:
        if value < 0:
            raise ValueError("negative")
        return value

    def apply(self, x):
        return x * self.scale + self.count


class Checked(BaseModel):
    model_config = ConfigDict(validate_assignment=True, extra="allow")

    count: int = 1


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)

    count: int = 1
    text: str = "q"


class Nested(BaseModel):
    options: Options = Field(default_factory=Options)
    items: dict[str, Frozen] = {}


@dataclass
class Pair:
    a: int
    b: float = 2.0


def reads(options, x):
    return options.apply(x) * options.double + len(options.name) + options._hidden


def has_weight(options, x):
    return x - 1 if options.weight is None else x + options.weight


def writes(options, x):
    options.count = options.count + 1
    options.tags.append(7)
    return x * options.count, options.model_fields_set


def iterates(options, x):
    return (
        [(name, value) for name, value in options if name != "weight"],
        list(type(options).model_fields),
        x + 1,
    )


def misses(options, x):
    try:
        return options.nothing
    except AttributeError as error:
        return str(error), x * 2


def looks_into(nested, x):
    for item in nested.items.values():
        x = x * item.count
    return nested.options.apply(x), isinstance(nested, BaseModel), repr(nested.items)


def equals(one, other, x):
    return x * 2 if one == other else x * 3


@pytest.mark.parametrize("program", [reads, has_weight, writes, iterates, misses])
def test_models_are_arguments(program):
    then = [
        (Options(count=5), X),
        (Options(name="bcd"), X),
        (Options(weight=torch.ones(4)), X),
        (Options(scale=1.5), X),
    ]
    check(program, Options(), X, then=then, recompiles=None)


def test_nested_models_are_arguments():
    one = Nested(items={"a": Frozen(count=4)})
    two = Nested(items={"a": Frozen(count=4), "b": Frozen(count=2)})
    check(looks_into, one, X, then=[(two, X)], recompiles=None)


def test_models_are_compared():
    check(
        equals,
        Frozen(),
        Frozen(),
        X,
        then=[(Frozen(), Frozen(count=2), X), (Frozen(), 3, X)],
        recompiles=None,
    )


def sets_checked(checked, x):
    checked.count = 5
    checked.extra = 3
    try:
        checked.count = "no number"
    except ValidationError as error:
        x = x + error.error_count()
    return x * checked.count + checked.extra


def sets_frozen(frozen, x):
    try:
        frozen.count = 4
    except ValidationError:
        x = x + 1
    return x * frozen.count, {frozen: 1}[Frozen(count=frozen.count)]


def makes(x):
    made = Options(scale=3, count=2)
    try:
        Options(count=-1)
    except ValidationError as error:
        x = x + error.error_count()
    return made.apply(x), made, made.model_copy(update={"count": 9}), made.model_dump(exclude={"weight"})


def test_what_is_done_in_compiled_code_of_pydantic_cuts():
    check(sets_checked, Checked(), X, graphs=None, breaks=None, recompiles=None)
    check(sets_frozen, Frozen(), X, then=[(Frozen(count=2), X)], graphs=None, breaks=None, recompiles=None)
    check(makes, X, graphs=None, breaks=None, recompiles=None)


def test_dataclasses_of_pydantic():
    def moves(pair, x):
        pair.a += 1
        return x * pair.a + pair.b, pair

    check(moves, Pair(1), X, then=[(Pair(2, b=1), X)], recompiles=None)
    check(lambda x: (Pair(a="3"), x + 1), X, graphs=None, breaks=None)


# --- attrs --------------------------------------------------------------------------------------


@attrs.define
class Slotted:
    x: int
    y: float = 2.0
    z: list = attrs.field(factory=list)

    def apply(self, t):
        return t * self.x + self.y


@attrs.define
class Derived(Slotted):
    k: int = attrs.field(default=5, kw_only=True)

    def __attrs_post_init__(self):
        self.z.append(self.k)


@attrs.frozen
class Fixed:
    x: int = 1
    y: str = "s"


@attrs.define(slots=False)
class Converted:
    x: int = attrs.field(default=1, converter=int, validator=attrs.validators.ge(0))
    t: Any = None

    @property
    def more(self):
        return self.x + 1


def moves(value, t):
    value.x += 1
    value.z.append(value.x)
    return value.apply(t), value, [field.name for field in attrs.fields(type(value))]


def test_attrs_are_arguments():
    check(moves, Slotted(1), X, then=[(Slotted(2), X), (Derived(2, k=3), X)], recompiles=None)


def makes_attrs(t):
    made = Slotted(3)
    derived = Derived(1, k=3)
    return (
        *(made.apply(t), made, derived, made == Slotted(3), made == derived),
        *(attrs.asdict(made), attrs.evolve(made, x=9), attrs.astuple(made), attrs.has(Derived)),
    )


def test_attrs_are_made_inside():
    check(makes_attrs, X)


def keeps(value, t):
    try:
        value.x = 3
    except attrs.exceptions.FrozenInstanceError as error:
        t = t + len(error.args)
    return t * value.x, hash(value) == hash(Fixed(value.x)), value == Fixed(), {value: 1}[Fixed(value.x)]


def test_frozen_attrs():
    check(keeps, Fixed(), X, then=[(Fixed(2), X)], recompiles=None)


def converts(value, t):
    value.x = "4"
    try:
        value.x = -1
    except ValueError as error:
        t = t * len(error.args)
    try:
        value.x = "no number"
    except ValueError as error:
        return t * value.more, value.x, str(error)


def test_converters_and_validators_of_attrs():
    check(converts, Converted(), X, then=[(Converted(2), X)], recompiles=None)


def test_slots_of_attrs_take_no_other_names():
    def sets(value, t):
        try:
            value.q = 3
        except AttributeError as error:
            return str(error), t * 2

    check(sets, Slotted(1), X)
