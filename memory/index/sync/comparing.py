"""Compares an index with the rows of the database: how many points there are, and whether a sample fits.

An index may open without an error and still not fit: it may be an older copy beside a newer database, or
damaged in places that nobody reads. Points are counted against bounds, since a row may be on its way in
or out of the index, and an expired memory is removed with its row only.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from memory.index import Index, Point


class Bounds(NamedTuple):
    least: int
    """Rows that the index certainly shows."""
    most: int
    """Those, and rows that it may show."""


@dataclass(frozen=True, slots=True)
class Comparison:
    points: int
    rows: Bounds
    sampled: int
    differing: int
    """Sampled rows that the index lacks or shows otherwise."""

    @property
    def fits(self) -> bool:
        return self.rows.least <= self.points <= self.rows.most and not self.differing

    def __str__(self) -> str:
        least, most = self.rows
        rows = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        wrong = (
            f", {self.differing} of {self.sampled} sampled are missing or differ" if self.differing else ""
        )
        return f"{self.points:,} points for {rows} rows{wrong}"


async def compare(
    index: Index,
    bounds: Callable[[], Awaitable[Bounds]],
    sample: Callable[[], Awaitable[Sequence[Point]]],
) -> Comparison:
    """Compare, while rows may change. Raises IndexUnavailable."""
    before, points, after = await bounds(), await index.count(), await bounds()
    rows = Bounds(min(before.least, after.least), max(before.most, after.most))
    expected = await sample()
    differing = await index.differing(expected) if expected else set()
    return Comparison(points, rows, len(expected), len(differing))
