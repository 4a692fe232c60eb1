"""The tensor part of a capture: recording it, and turning it into what backends take."""

from graphlift.output_graph.captured import CapturedGraph
from graphlift.output_graph.graph import OutputGraph

__all__ = ["CapturedGraph", "OutputGraph"]
