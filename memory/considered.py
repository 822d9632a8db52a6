"""What a search had before it, and why each was left out: for whoever asks why something was not found."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memory.ranking import Candidate, Lanes

EXCERPT = 200
"""Characters of a candidate's text."""


@dataclass(frozen=True, slots=True)
class Considered:
    lanes: Lanes
    """By the name of the lane the raw scores of the index, best first."""
    candidates: Mapping[str, Candidate]
    """What the record says of those that may be read."""
    ranked: Sequence[tuple[str, float]]
    limit: int
    shown: frozenset[str]
    """What the model has before its eyes already."""

    def to_trace(self) -> list[dict[str, Any]]:
        """One a candidate, best first; of what may not be read no more than its id."""
        return [*self._ranked(), *self._refused()]

    def _ranked(self) -> Iterator[dict[str, Any]]:
        scores = {name: dict(hits) for name, hits in self.lanes.items()}
        for place, (id, score) in enumerate(self.ranked):
            candidate = self.candidates[id]
            told = {
                "id": id,
                "kind": candidate.kind,
                "content": candidate.text[:EXCERPT],
                "author": candidate.author,
                "created_at": candidate.created_at.isoformat(),
                "score": round(score, 4),
                "lanes": {name: round(found[id], 4) for name, found in scores.items() if id in found},
            }
            if score <= 0.0:
                yield told | {"left_out": "nothing speaks for it"}
            elif place >= self.limit:
                yield told | {"left_out": f"below the first {self.limit}"}
            else:
                yield told

    def _refused(self) -> Iterator[dict[str, Any]]:
        seen = dict.fromkeys(id for hits in self.lanes.values() for id, _ in hits)
        for id in seen:
            if id in self.shown:
                yield {"id": id, "left_out": "the model sees it already"}
            elif id not in self.candidates:
                yield {"id": id, "left_out": "gone, expired, or not to be read here"}
