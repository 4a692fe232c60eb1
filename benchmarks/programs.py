"""The programs that are measured: small enough to capture often, big enough to be real."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

Program = tuple[Callable[..., Any], tuple[Any, ...]]


class Block(nn.Module):
    """A residual block of four operations."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, width)
        self.down = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(F.relu(self.up(x)))


def blocks(depth: int = 100) -> Program:
    """A deep stack of residual blocks: four operations and four parameters each."""
    return nn.Sequential(*(Block(16) for _ in range(depth))).eval(), (torch.rand(2, 16),)


def long_function(lines: int = 1000) -> Program:
    """One function of a thousand lines, two operations each."""
    body = "\n".join(f"    x = x * {1 + i / lines} + {i}" for i in range(lines))
    namespace: dict[str, Any] = {}
    exec(compile(f"def long_function(x):\n{body}\n    return x\n", "<long function>", "exec"), namespace)
    return namespace["long_function"], (torch.rand(8),)


def two_tensors() -> Program:
    """The smallest program worth compiling."""

    def multiply_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x * y + 1

    return multiply_add, (torch.rand(8), torch.rand(8))


def containers() -> Program:
    """Arguments in a dictionary and a list, with a number and a flag."""

    def weigh(batch: dict[str, torch.Tensor], weights: list[torch.Tensor], power: int, scale: bool) -> Any:
        total = sum(batch["x"] ** power * weight for weight in weights)
        return {"y": total / len(weights) if scale else total, "mask": batch["mask"]}

    batch = {"x": torch.rand(4), "mask": torch.ones(4, dtype=torch.bool)}
    return weigh, (batch, [torch.rand(4) for _ in range(3)], 2, True)


def sequential(depth: int = 20) -> Program:
    """Twenty linear layers."""
    return nn.Sequential(*(nn.Linear(8, 8) for _ in range(depth))).eval(), (torch.rand(2, 8),)


def llama(layers: int = 12) -> Program:
    """A tiny Llama with random weights, transformers' own code."""
    from transformers import LlamaConfig, LlamaModel

    config = LlamaConfig(
        vocab_size=128,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        use_cache=False,
    )
    model = LlamaModel(config).eval()
    return model, (torch.randint(0, 128, (2, 16)),)


def gpt2(layers: int = 4) -> Program:
    """A tiny GPT-2 with random weights, transformers' own code."""
    from transformers import GPT2Config, GPT2Model

    config = GPT2Config(vocab_size=128, n_embd=64, n_layer=layers, n_head=4, n_positions=64, use_cache=False)
    return GPT2Model(config).eval(), (torch.randint(0, 128, (2, 16)),)


def bert(layers: int = 4) -> Program:
    """A tiny BERT with random weights, transformers' own code."""
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=128,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=layers,
        num_attention_heads=4,
        max_position_embeddings=64,
    )
    return BertModel(config).eval(), (torch.randint(0, 128, (2, 16)),)


CAPTURED = {
    "blocks, 100": blocks,
    "one function, 1000 lines": long_function,
    "Llama, 12 layers": llama,
    "GPT-2, 4 layers": gpt2,
    "BERT, 4 layers": bert,
}

CALLED = {
    "two tensors": two_tensors,
    "dict, list, numbers": containers,
    "20 linear layers": sequential,
    "100 blocks": blocks,
    "Llama, 12 layers": llama,
}
