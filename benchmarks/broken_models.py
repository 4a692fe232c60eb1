"""What is captured of real models that cannot be one graph: graphlift and torch.compile side by side.

    python benchmarks/broken_models.py [--only bert]

In the middle of each model a helper three calls deep takes a number out of a tensor, prints it and branches
on data. Told are graphs and captured operations of the first call, and whether the results agree.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import engines
import programs
import torch
import transformers
from torch import nn

Program = programs.Program


# --- what breaks ---------------------------------------------------------------------------------------


class Watched(nn.Module):
    """A layer whose result is looked at."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        result = self.inner(*args, **kwargs)
        if isinstance(result, tuple):
            return (watch(result[0]), *result[1:])
        return watch(result)


def watch(hidden: torch.Tensor) -> torch.Tensor:
    return rescaled(hidden * 1.0) + 0.0


def rescaled(hidden: torch.Tensor) -> torch.Tensor:
    size = hidden.abs().mean()
    return damped(hidden, size) / (1 + size)


def damped(hidden: torch.Tensor, size: torch.Tensor) -> torch.Tensor:
    centred = hidden - hidden.mean()
    level = size.item()
    print(f"level {level:.3f}")
    if centred.sum() > 1e6:
        return centred * 0.5
    return centred * level


def with_watch(model: nn.Module) -> nn.Module:
    """`model` with a watched layer in the middle of its longest list of layers."""
    stacks = [m for m in model.modules() if isinstance(m, (nn.ModuleList, nn.Sequential))]
    layers = max(stacks, key=len)
    middle = len(layers) // 2
    layers[middle] = Watched(layers[middle])
    return model.eval()


# --- the models ----------------------------------------------------------------------------------------

TINY = {
    "vocab_size": 128,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
}
IDS = (torch.arange(32).reshape(2, 16),)
IMAGES = (torch.linspace(-1, 1, 2 * 3 * 32 * 32).reshape(2, 3, 32, 32),)


def of(kind: str, inputs: tuple[Any, ...], **settings: Any) -> Callable[[], Program]:
    """A tiny model of transformers with random weights."""

    def make() -> Program:
        config = getattr(transformers, f"{kind}Config")(**settings)
        return with_watch(getattr(transformers, f"{kind}Model")(config)), inputs

    return make


def encoder() -> Program:
    """torch's own transformer encoder."""
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    return with_watch(nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)), (torch.rand(2, 16, 32),)


def blocks() -> Program:
    """Residual blocks."""
    model, inputs = programs.blocks(12)
    assert isinstance(model, nn.Module)
    return with_watch(model), inputs


MODELS: dict[str, Callable[[], Program]] = {
    "BERT": of("Bert", IDS, **TINY),
    "RoBERTa": of("Roberta", IDS, **TINY),
    "GPT-2": of("GPT2", IDS, vocab_size=128, n_embd=32, n_layer=4, n_head=4, use_cache=False),
    "Llama": of("Llama", IDS, num_key_value_heads=2, use_cache=False, **TINY),
    "Mistral": of("Mistral", IDS, num_key_value_heads=2, use_cache=False, **TINY),
    "Qwen2": of("Qwen2", IDS, num_key_value_heads=2, use_cache=False, **TINY),
    "ViT": of(
        "ViT", IMAGES, image_size=32, patch_size=8, **{k: v for k, v in TINY.items() if k != "vocab_size"}
    ),
    "DistilBERT": of("DistilBert", IDS, vocab_size=128, dim=32, hidden_dim=64, n_layers=4, n_heads=4),
    "nn.TransformerEncoder": encoder,
    "residual blocks": blocks,
}


# --- measuring -----------------------------------------------------------------------------------------


class Counting:
    """A backend that counts graphs and operations and runs graphs as they are."""

    def __init__(self) -> None:
        self.graphs = self.operations = 0

    def __call__(self, graph_module: Any, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        self.graphs += 1
        self.operations += sum(node.op.startswith("call_") for node in graph_module.graph.nodes)
        forward: Callable[..., Any] = graph_module.forward
        return forward


def captured(engine: engines.Engine, program: Program) -> tuple[Counting, Any]:
    """What a first call captured, and its result."""
    engine.reset()
    counting = Counting()
    fn, inputs = program
    with contextlib.redirect_stdout(io.StringIO()):
        result = engine.compile(fn, backend=counting)(*inputs)
    return counting, tensor_of(result)


def tensor_of(result: Any) -> torch.Tensor:
    found = result if isinstance(result, torch.Tensor) else result[0]
    assert isinstance(found, torch.Tensor)
    return found


def compared(name: str) -> bool:
    """Print a model's line; whether graphlift captured as much as torch.compile, and the results agree."""
    engines.say(name)
    program = MODELS[name]()
    with contextlib.redirect_stdout(io.StringIO()):
        plain = tensor_of(program[0](*program[1]))
    (ours, result), (theirs, _) = (captured(engine, program) for engine in engines.BOTH)
    engines.say("")
    difference = (result - plain).abs().max().item()
    print(
        f"{name:24}{ours.graphs:5} / {ours.operations:6}{theirs.graphs:7} / {theirs.operations:6}"
        f"  {difference}",
        flush=True,
    )
    return ours.operations >= theirs.operations and not difference


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--only", default="", help="models whose name contains this")
    only = parser.parse_args().only.lower()
    engines.quiet_machine()
    print(f"{'graphs / operations':24}{'graphlift':>14}{'torch.compile':>16}  largest difference")
    with torch.no_grad():
        fewer = [name for name in MODELS if only in name.lower() and not compared(name)]
    print("fewer operations than torch.compile, or a difference: " + (", ".join(fewer) or "none"))
    sys.exit(bool(fewer))


if __name__ == "__main__":
    main()
