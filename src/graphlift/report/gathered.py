"""Everything that one call captured, gathered from events; knows nothing of how it is shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from graphlift import events
from graphlift.profile import Profile
from graphlift.records import Break, Breaks
from graphlift.report.text import place

#: The events that an explanation is made from.
KINDS: tuple[type[events.Event], ...] = (
    events.CaptureFinished,
    events.CaptureProfiled,
    events.EntryAdded,
    events.GraphBroken,
    events.GraphFinished,
    events.InternalFailure,
)


@dataclass(slots=True)
class Gathered:
    """The graphs, breaks, guards and times of one call.

    Attributes:
        function: what was explained, with its file and line.
        captured: the graphs with their nodes, in the order in which they were finished.
        breaks: where the graph was cut, and why.
        guards: what the captures assumed, a line each.
        times: seconds by phase, all captures together.
        profiles: for each frame that was followed, where the time went and what its guards cost.
        captures: one line for each frame looked at.
        failures: graphlift's own errors.
    """

    function: str
    captured: list[events.Graph] = field(default_factory=list)
    breaks: Breaks = field(default_factory=Breaks)
    guards: list[str] = field(default_factory=list)
    times: dict[str, float] = field(default_factory=dict)
    profiles: list[Profile] = field(default_factory=list)
    captures: list[str] = field(default_factory=list)
    failures: list[BaseException] = field(default_factory=list)

    @property
    def graphs(self) -> list[Any]:
        """The graphs as `torch.fx.GraphModule`s."""
        return [graph.graph_module for graph in self.captured]

    @property
    def graph_count(self) -> int:
        """How many graphs were captured."""
        return len(self.captured)

    @property
    def break_reasons(self) -> list[Break]:
        """Where the graph was cut, and why; a place that was met again is there once, and counts."""
        return self.breaks.found

    @property
    def graph_break_count(self) -> int:
        """How often a graph was cut."""
        return sum(cut.count for cut in self.break_reasons)

    @property
    def ops_per_graph(self) -> list[Mapping[str, int]]:
        """For each graph, how often each operation occurs."""
        return [graph.op_counts() for graph in self.captured]

    @property
    def op_count(self) -> int:
        """Operations in all graphs together."""
        return sum(graph.node_count for graph in self.captured)

    @property
    def op_totals(self) -> Counter[str]:
        """How often each operation occurs in all graphs together, most frequent first."""
        totals: Counter[str] = Counter()
        for counts in self.ops_per_graph:
            totals.update(counts)
        return Counter(dict(totals.most_common()))

    @property
    def total_seconds(self) -> float:
        """Time of all phases."""
        return sum(self.times.values())

    def note(self, event: Any) -> None:
        """Take an event in."""
        match event:
            case events.GraphFinished():
                self.captured.append(event.graph)
            case events.GraphBroken():
                self.breaks.note(event)
            case events.EntryAdded():
                self.guards.extend(event.lines())
            case events.InternalFailure():
                self.failures.append(event.error)
            case events.CaptureProfiled():
                self.profiles.append(event.profile)
            case events.CaptureFinished():
                for phase, seconds in event.seconds.items():
                    self.times[phase] = self.times.get(phase, 0.0) + seconds
                line = f"{place(event.code)}: {event.outcome}"
                self.captures.append(line)
