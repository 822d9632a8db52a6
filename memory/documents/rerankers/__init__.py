"""Rerankers: the index proposes fifty chunks, a reranker picks the few worth reading.

`fused` fuses the index's scores with features of the text, and diversifies; it needs no model. Another one is
`agent.models.model_reranker`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk that may answer the query."""

    id: str
    document_id: str
    chunk_index: int
    title: str
    heading: str
    """The headings above the chunk, outermost first, joined by `` > ``."""
    text: str
    source: str
    """The document's path."""
    scores: Mapping[str, float]
    """Raw scores by index lane: cosine for ``dense``, BM25 for ``words``."""
    match: float = 0.0
    """The fused score, 0.0 to 1.0."""


class Reranker(Protocol):
    async def __call__(
        self, query: str, candidates: Sequence[Candidate], limit: int
    ) -> list[tuple[str, float]]:
        """The ids of at most `limit` relevant candidates, best first, with scores from 0.0 to 1.0. If it
        raises, the search keeps the fused order."""
        ...
