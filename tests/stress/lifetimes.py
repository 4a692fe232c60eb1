"""What a program drops is freed at once: models, inputs, closures, compiled objects."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import torch
from _resident import require

import graphlift


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 4))
        self.scale = 2.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x) * self.scale


class Breaking(Model):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.layers(x)
        if y.sum() > 0:
            return y * self.scale
        return y - self.scale


def closure() -> tuple[Callable[..., Any], Any]:
    """A function over an object that nobody else has."""
    held = Model()

    def program(x: torch.Tensor) -> torch.Tensor:
        return held(x) + 1

    return program, held


def dies(name: str, make: Callable[[], tuple[Callable[..., Any], Any]], collect: bool = False) -> None:
    """Compile, call, drop; the object must be gone, without the collector's help unless `collect`."""
    gc.collect()
    gc.disable()
    try:
        fn, held = make()
        watched = weakref.ref(held)
        compiled = graphlift.compile(fn, backend="eager")
        for size in (2, 3, 5):  # a recompile among them
            compiled(torch.ones(size, 4))
        del fn, held, compiled
        if collect:
            gc.collect()
        require(watched() is None, f"{name} is freed{' by the collector' if collect else ' at once'}")
    finally:
        gc.enable()


def import_on_demand() -> None:
    """Have torch import what symbolic sizes need: modules that wrap functions at import (`torch.fx.wrap`)
    keep the frames of whoever happened to be running, once a process."""
    compiled = graphlift.compile(lambda x: x * 2, backend="eager", dynamic=True)
    compiled(torch.ones(5))


def model_of(kind: type[Model]) -> Callable[[], tuple[Callable[..., Any], Any]]:
    def make() -> tuple[Callable[..., Any], Any]:
        model = kind()
        return model, model

    return make


def method() -> tuple[Callable[..., Any], Any]:
    model = Model()
    return model.forward, model


def input_is_released() -> None:
    """Neither entry nor record keeps a tensor that was passed in."""

    def program(x: torch.Tensor, kept: list[torch.Tensor]) -> torch.Tensor:
        return x * 2 + kept[0]

    compiled = graphlift.compile(program, backend="eager")
    x, other = torch.ones(4), torch.ones(4)
    watched = [weakref.ref(x), weakref.ref(other)]
    result = compiled(x, [other])
    del x, other
    require(all(ref() is None for ref in watched), "inputs are freed when the call is over")
    kept = weakref.ref(result)
    del result
    require(kept() is None, "results are freed with their last name")


def plainly_frees(make: Callable[[], tuple[Callable[..., Any], Any]]) -> bool:
    """Whether plain Python frees the object without the collector."""
    gc.disable()
    fn, held = make()
    watched = weakref.ref(held)
    fn(torch.ones(2, 4))
    del fn, held
    freed = watched() is None
    gc.enable()
    return freed


def main() -> None:
    import_on_demand()
    torch.set_num_threads(1)
    for name, make in {
        "a model": model_of(Model),
        "a model whose graph breaks": model_of(Breaking),
        "a bound method's object": method,
        "what a closure holds": closure,
    }.items():
        dies(name, make, collect=not plainly_frees(make))
    input_is_released()


if __name__ == "__main__":
    main()
