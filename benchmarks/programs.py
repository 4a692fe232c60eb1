"""The programs that are measured: small enough to capture often, big enough to be real."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

Program = tuple[Callable[..., Any], tuple[Any, ...]]


class Block(nn.Module):
    """A residual block of four operations and four parameters."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.norm(F.relu(self.linear(x)))


def blocks(depth: int = 100) -> Program:
    """A deep stack of residual blocks."""
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


def linears(depth: int) -> Program:
    """Linear layers one after another."""
    return nn.Sequential(*(nn.Linear(8, 8) for _ in range(depth))).eval(), (torch.rand(2, 8),)


# --- transformers' own code, random weights, tiny widths -------------------------------------------------

#: What most configurations call alike.
TINY = {"hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4}


def of(kind: str, inputs: str, **settings: Any) -> Callable[[], Program]:
    """Makes a tiny model of transformers and its arguments, "tokens" or "images"."""

    def make() -> Program:
        import transformers

        config = getattr(transformers, f"{kind}Config")(**settings)
        model = getattr(transformers, f"{kind}Model")(config).eval()
        if inputs == "images":
            return model, (torch.rand(2, 3, 32, 32),)
        return model, (torch.randint(0, 128, (2, 16)),)

    return make


def t5() -> Program:
    """Encoder and decoder of six layers each; the decoder has its own tokens."""
    from transformers import T5Config, T5Model

    config = T5Config(
        vocab_size=128, d_model=64, d_kv=16, d_ff=128, num_layers=6, num_heads=4, use_cache=False
    )
    model = T5Model(config).eval()
    tokens = torch.randint(0, 128, (2, 16))

    def encode_and_decode(tokens: torch.Tensor) -> Any:
        return model(input_ids=tokens, decoder_input_ids=tokens)

    return encode_and_decode, (tokens,)


MODELS: dict[str, Callable[[], Program]] = {
    "Llama, 12 layers": of(
        "Llama",
        "tokens",
        vocab_size=128,
        num_hidden_layers=12,
        num_key_value_heads=2,
        use_cache=False,
        **TINY,
    ),
    "GPT-2, 12 layers": of(
        "GPT2",
        "tokens",
        vocab_size=128,
        n_embd=64,
        n_layer=12,
        n_head=4,
        use_cache=False,
        bos_token_id=0,
        eos_token_id=0,
    ),
    "BERT, 12 layers": of("Bert", "tokens", vocab_size=128, num_hidden_layers=12, **TINY),
    "ViT, 12 layers": of("ViT", "images", image_size=32, patch_size=8, num_hidden_layers=12, **TINY),
    "T5, 6 + 6 layers": t5,
    "Mixtral, 6 layers": of(
        "Mixtral",
        "tokens",
        vocab_size=128,
        num_hidden_layers=6,
        num_key_value_heads=2,
        num_local_experts=4,
        use_cache=False,
        **TINY,
    ),
    "ResNet": of("ResNet", "images", embedding_size=16, hidden_sizes=[16, 32, 64, 128]),
}

CAPTURED: dict[str, Callable[[], Program]] = {
    "two tensors": two_tensors,
    "blocks, 100": blocks,
    "one function, 1000 lines": long_function,
    **MODELS,
}

CALLED: dict[str, Callable[[], Program]] = {
    "two tensors": two_tensors,
    "dict, list, numbers": containers,
    "1 linear layer": lambda: linears(1),
    "10 linear layers": lambda: linears(10),
    "100 linear layers": lambda: linears(100),
    "400 linear layers": lambda: linears(400),
    "100 blocks": blocks,
    "Llama, 12 layers": MODELS["Llama, 12 layers"],
}
