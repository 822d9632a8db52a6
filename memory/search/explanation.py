"""Explains a search: its candidates, and why each was left out, for "why was this not found?"."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memory.search.ranking import Candidate, Lanes, matching

EXCERPT = 200
"""The most characters of a candidate's text."""


@dataclass(frozen=True, slots=True)
class Explanation:
    lanes: Lanes
    """The raw scores of the index by lane, best first."""
    candidates: Mapping[str, Candidate]
    """The candidates whose rows may be read."""
    ranked: Sequence[tuple[str, float]]
    limit: int
    shown: frozenset[str]
    """The ids that the prompt already contains."""
    floor: float
    """The least cosine of what shares no word with the question."""

    def to_trace(self) -> dict[str, dict[str, list[Any]]]:
        """The candidates, best first; for those that may not be read only the id. They are stored as columns,
        because repeating the names for two hundred rows would make up most of the trace."""
        refused = self._refused()
        ids = [id for id, _ in self.ranked]
        found = [self.candidates[id] for id in ids]
        columns: dict[str, list[Any]] = {
            "id": [*ids, *refused],
            "kind": [one.kind for one in found],
            "content": [one.text[:EXCERPT] for one in found],
            "author": [one.author for one in found],
            "created_at": [one.created_at for one in found],
            "score": [round(score, 4) for _, score in self.ranked],
        }
        for name, hits in self.lanes.items():
            scores = dict(hits)
            columns[f"{LANES}{name}"] = [round(scores[id], 4) if id in scores else None for id in ids]
        columns["left_out"] = [*map(self._why, range(len(ids)), self.ranked), *refused.values()]
        rows = len(columns["id"])
        return {
            COLUMNS: {name: [*column, *[None] * (rows - len(column))] for name, column in columns.items()}
        }

    def _why(self, place: int, ranked: tuple[str, float]) -> str | None:
        if ranked[1] <= 0.0:
            alike = ranked[0] in matching(self.lanes, self.floor)
            return (
                "too weak beside the others"
                if alike
                else f"shares no word, and under {self.floor:.2f} in meaning"
            )
        return f"below the first {self.limit}" if place >= self.limit else None

    def _refused(self) -> dict[str, str]:
        seen = dict.fromkeys(id for hits in self.lanes.values() for id, _ in hits)
        seen_already, gone = "the model sees it already", "gone, expired, or not to be read here"
        return {
            id: seen_already if id in self.shown else gone
            for id in seen
            if id in self.shown or id not in self.candidates
        }


COLUMNS = "columns"
LANES = "lanes."


def rows_of(traced: Any) -> Any:
    """Convert the columns of `to_trace` to one dict per candidate. Returns any other value unchanged."""
    if not isinstance(traced, Mapping) or COLUMNS not in traced:
        return traced
    columns = traced[COLUMNS]
    rows: list[dict[str, Any]] = []
    for values in zip(*columns.values(), strict=True):
        row: dict[str, Any] = {}
        for name, value in zip(columns, values, strict=True):
            if value is None:
                continue
            if name.startswith(LANES):
                row.setdefault("lanes", {})[name.removeprefix(LANES)] = value
            else:
                row[name] = value
        rows.append(row)
    return rows
