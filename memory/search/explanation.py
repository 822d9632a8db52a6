"""Record the candidates of one search for the trace, with the reasons why some were left out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from memory.process.spans import MARK
from memory.search.ranking import Candidate, Lanes

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

    def to_trace(self) -> dict[str, dict[str, list[Any]]]:
        """Return the candidates, best first; what was left out by a marked id, so that the trace does not
        rest on it. As columns, since names for two hundred rows would be most of the trace."""
        refused, ids = self._refused(), [id for id, _ in self.ranked]
        why = [self._why(place, score) for place, (_, score) in enumerate(self.ranked)]
        found = [None if reason else self.candidates[id] for id, reason in zip(ids, why, strict=True)]
        columns: dict[str, list[Any]] = {
            "id": [
                *(f"{MARK}{id}" if reason else id for id, reason in zip(ids, why, strict=True)),
                *(f"{MARK}{id}" for id in refused),
            ],
            "kind": [self.candidates[id].kind for id in ids],
            "content": [one and one.text[:EXCERPT] for one in found],
            "author": [one and one.author for one in found],
            "created_at": [one and one.created_at for one in found],
            "score": [round(score, 4) for _, score in self.ranked],
        }
        for name, hits in self.lanes.items():
            scores = dict(hits)
            columns[f"{LANES}{name}"] = [round(scores[id], 4) if id in scores else None for id in ids]
        columns["left_out"] = [*why, *refused.values()]
        return {COLUMNS: {name: _without_last_nones(column) for name, column in columns.items()}}

    def _why(self, place: int, score: float) -> str | None:
        if score <= 0.0:
            return "too far from the question in words and meaning"
        return f"below the first {self.limit}" if place >= self.limit else None

    def _refused(self) -> dict[str, str]:
        seen = dict.fromkeys(id for hits in self.lanes.values() for id, _ in hits)
        seen_already, gone = "the model sees it already", "gone, expired, or not to be read here"
        return {
            id: seen_already if id in self.shown else gone
            for id in seen
            if id in self.shown or id not in self.candidates
        }


def _without_last_nones(column: list[Any]) -> list[Any]:
    """Return the column up to its last value. Columns that only hits have are much shorter."""
    while column and column[-1] is None:
        column.pop()
    return column


COLUMNS = "columns"
LANES = "lanes."


def rows_of(traced: Any) -> list[dict[str, Any]]:
    """Convert the result of `to_trace`, columns or rows, to one dict per candidate, without marks."""
    rows: list[dict[str, Any]] = []
    if isinstance(traced, Mapping) and isinstance(columns := traced.get(COLUMNS), Mapping):
        for values in zip_longest(*columns.values()):
            row: dict[str, Any] = {}
            for name, value in zip(columns, values, strict=True):
                if value is not None and name.startswith(LANES):
                    row.setdefault("lanes", {})[name.removeprefix(LANES)] = value
                elif value is not None:
                    row[name] = value
            rows.append(row)
    elif isinstance(traced, list):
        rows = [dict(one) for one in traced if isinstance(one, Mapping)]
    return [row | {"id": str(row.get("id", "")).removeprefix(MARK)} for row in rows]
