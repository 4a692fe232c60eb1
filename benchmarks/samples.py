"""Samples in files of pyperf's, which ``pyperf show`` and ``pyperf compare_to`` read, too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyperf
from rows import Row, Target


def to_benchmarks(row: Row) -> Iterator[pyperf.Benchmark]:
    """A row as pyperf keeps it: one benchmark a side."""
    for side, values in row.samples.items():
        metadata: dict[str, Any] = {
            "name": f"{row.question}: {row.name}: {side}",
            "unit": row.unit,
            "question": row.question,
            "row": row.name,
            "side": side,
        }
        if row.target is not None:
            metadata |= {"target": row.target.kind, "bound": float(row.target.bound)}
        if row.size:
            metadata["size"] = row.size
        if row.remark:
            metadata["remark"] = row.remark
        run = pyperf.Run([max(float(value), 1e-12) for value in values], metadata=metadata)
        yield pyperf.Benchmark([run])


def write(found: Iterable[Row], path: str) -> None:
    """Write rows to a file."""
    suite = pyperf.BenchmarkSuite([benchmark for row in found for benchmark in to_benchmarks(row)])
    suite.dump(path, replace=True)


def read(path: str) -> list[Row]:
    """The rows of a file that `write` wrote."""
    rows: dict[tuple[str, str], Row] = {}
    for benchmark in pyperf.BenchmarkSuite.load(path).get_benchmarks():
        about = benchmark.get_metadata()
        key = about["question"], about["row"]
        target = Target(about["target"], about["bound"]) if "target" in about else None
        row = rows.setdefault(key, Row(*key, {}, about["unit"], target))
        row.remark, row.size = about.get("remark", ""), about.get("size", 0)
        row.samples[about["side"]] = list(benchmark.get_values())
    return list(rows.values())
