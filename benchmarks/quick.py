"""Has anything become much slower? Instruction counts, and ratios with room for a busy machine.

    python benchmarks/quick.py

Counted are the bytecode instructions that capturing a program executes in Python, a captured operation: the
same on every run of one Python and torch, whatever else the machine does. The ratios fail only when they are
off by a factor of about two. Ends with status 1 when anything is over its bound. No second is a bound.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import breaks
import call_overhead
import engines
import programs
import torch
from torch import nn
from torch.nn import functional as F

from graphlift import events


class Attention(nn.Module):
    """A layer as language models have them: views, slices, keyword arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.heads, self.scale = 4, 0.5
        self.q, self.k, self.v, self.o = (nn.Linear(32, 32, bias=False) for _ in range(4))
        self.norm = nn.LayerNorm(32)

    def split(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(*x.shape[:-1], self.heads, -1).transpose(1, 2)

    def forward(self, x: torch.Tensor, **settings: Any) -> torch.Tensor:
        h = self.norm(x)
        q, k, v = (self.split(project(h)) for project in (self.q, self.k, self.v))
        q = torch.cat((-q[..., 4:], q[..., :4]), dim=-1)
        out = F.scaled_dot_product_attention(q, k, v, scale=self.scale, **settings)
        return x + self.o(out.transpose(1, 2).reshape(x.shape))


def attention(depth: int = 10) -> programs.Program:
    """Ten such layers."""
    layers = nn.ModuleList(Attention() for _ in range(depth)).eval()

    def run(x: torch.Tensor, settings: dict[str, Any]) -> torch.Tensor:
        for layer in layers:
            x = layer(x, **settings)
        return x

    return run, (torch.rand(2, 6, 32), {"is_causal": True})


#: Program -> its maker, and the most instructions an operation may take to capture: a sixth above the count
#: of the day it was set. Lower it when captures have become cheaper.
COUNTED: dict[str, tuple[Callable[[], programs.Program], int]] = {
    "20 blocks": (lambda: programs.blocks(20), 9_200),
    "10 attention layers": (attention, 7_100),
    "200 lines": (lambda: programs.long_function(200), 1_800),
}


def instructions(fn: engines.Function, args: Sequence[Any]) -> float:
    """Instructions executed for each operation of the one graph that a first call captures."""
    executed = 0

    def count(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal executed
        frame.f_trace_opcodes = True
        executed += event == "opcode"
        return count

    operations: list[int] = []

    def backend(graph_module: Any, example_inputs: Sequence[Any]) -> engines.Function:
        forward: engines.Function = graph_module.forward
        operations.append(sum(node.op.startswith("call_") for node in graph_module.graph.nodes))
        return forward

    engines.GRAPHLIFT.compile(fn, backend=backend)(*args)
    engines.GRAPHLIFT.reset()
    engines.graphs = 0
    compiled = engines.GRAPHLIFT.compile(fn, backend=engines.as_it_is)
    # A traced thread is left to Python, so tracing begins when the capture does.
    begin = events.subscribe(lambda event: sys.settrace(count), events.CaptureStarted)
    end = events.subscribe(lambda event: sys.settrace(None), events.CaptureFinished)
    try:
        compiled(*args)
    finally:
        begin()
        end()
    assert engines.graphs == len(operations) == 1
    return executed / operations[0]


def capture_ratio() -> float:
    """How many times longer torch.compile takes to capture fifty blocks."""
    fn, args = programs.blocks(50)
    samples = engines.alternating(lambda engine: engines.first_call_seconds(engine, fn, args)[0], 2)
    return min(samples[engines.STOCK.name]) / min(samples[engines.GRAPHLIFT.name])


def call_ratio(name: str) -> Callable[[], float]:
    """How many times longer a warm call of torch.compile's takes."""

    def ratio() -> float:
        row = next(iter(call_overhead.measure(name, 3)))
        assert row.ratio is not None
        return row.ratio

    return ratio


def break_ratio() -> float:
    """How many times faster plain Python is than fifty cuts."""
    row = next(iter(breaks.measure("item between operations", 5)))
    assert row.ratio is not None
    return 1 / row.ratio


#: What is compared -> how, and the least ratio that is taken.
RATIOS: dict[str, tuple[Callable[[], float], float]] = {
    "capture of 50 blocks, torch.compile : graphlift": (capture_ratio, 10),
    "warm call of two tensors, torch.compile : graphlift": (call_ratio("two tensors"), 12),
    "warm call of 100 linear layers, torch.compile : graphlift": (call_ratio("100 linear layers"), 4),
    "fifty cuts, plain Python : graphlift": (break_ratio, 0.5),
}


def main() -> None:
    engines.quiet_machine()
    failed = []
    with torch.no_grad():
        engines.warm_up()
        for name, (make, most) in COUNTED.items():
            found = instructions(*make())
            print(f"{name + ', instructions an operation':60}{found:8.0f}  at most {most}", flush=True)
            if found > most:
                failed.append(name)
        for name, (ratio, least) in RATIOS.items():
            found = ratio()
            print(f"{name:60}{found:8.1f}  at least {least:g}", flush=True)
            if found < least:
                failed.append(name)
    if failed:
        print(f"over the bound: {', '.join(failed)}")
        sys.exit(1)


if __name__ == "__main__":
    main()
