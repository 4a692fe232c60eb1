"""What a fresh process pays: which modules are imported until the first graph runs."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = "torch._dynamo", "torch._inductor", "sympy", "torch.fx.experimental.symbolic_shapes"

BLOCKS = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.norm = nn.Linear(8, 8), nn.LayerNorm(8)

    def forward(self, x):
        return x + F.relu(self.norm(self.up(x)))

model, inputs = nn.Sequential(*(Block() for _ in range(3))), (torch.ones(2, 8),)
"""

LLAMA = """
class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8))

    def forward(self, x):
        wide = x.to(torch.float32)
        return self.weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)

def rotated(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), dim=-1) * sin

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.after = Norm(), Norm()
        self.q, self.k, self.v, self.o = (nn.Linear(8, 8, bias=False) for _ in range(4))
        self.gate, self.up, self.down = nn.Linear(8, 16), nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x, cos, sin):
        h = self.before(x)
        q, k, v = (p(h).view(*h.shape[:-1], 2, 4).transpose(1, 2) for p in (self.q, self.k, self.v))
        q, k = rotated(q, cos, sin), rotated(k, cos, sin)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(attended.transpose(1, 2).reshape(x.shape).contiguous())
        h = self.after(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.norm = nn.Embedding(16, 8), Norm()
        self.layers = nn.ModuleList(Layer() for _ in range(2))
        self.register_buffer("frequency", torch.ones(2))

    def forward(self, ids):
        x = self.embed(ids)
        at = torch.arange(ids.shape[1], device=ids.device)[None, :, None].float()
        turn = torch.cat((at @ self.frequency[None, None, :],) * 2, dim=-1)
        for layer in self.layers:
            x = layer(x, turn.cos(), turn.sin())
        return self.norm(x)

model, inputs = Model(), (torch.arange(6).reshape(1, 6),)
"""


def run_fresh(program: str) -> str:
    """What a program prints in a process of its own."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("model", [BLOCKS, LLAMA], ids=["blocks", "llama"])
def test_the_first_capture_imports_nothing_heavy(model: str) -> None:
    program = "\n".join(
        [
            "import sys, torch, torch.nn.functional as F",
            "from torch import nn",
            "import graphlift",
            model,
            "for grad in (False, True):",
            "    with torch.set_grad_enabled(grad):",
            "        graphlift.compile(model, backend='eager', fullgraph=True)(*inputs)",
            f"print([name for name in {HEAVY} if name in sys.modules])",
        ]
    )
    assert run_fresh(program) == "[]\n"


def test_importing_the_package_brings_little() -> None:
    program = f"""
import sys
import graphlift
print("torch" in sys.modules)
graphlift.compile
print([name for name in {HEAVY} if name in sys.modules])
"""
    assert run_fresh(program) == "False\n[]\n"


def test_no_garbage_is_collected_while_the_package_is_loaded() -> None:
    program = """
import gc, torch, graphlift
from graphlift import quiet
collections = []
gc.callbacks.append(lambda phase, info: collections.append(phase))
graphlift.compile
print(len(collections) <= 2, gc.isenabled())
"""
    assert run_fresh(program) == "True True\n"
