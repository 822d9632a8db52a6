"""Putting candidates in order: the index proposes fifty chunks, a reranker says which few are worth reading.

fused         features of the text and the index's scores, with diversity; needs nothing
crossencoder  a model run here by fastembed; `pip install 'hachi[fastembed]'`
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

Lane = str
"""A list of the index: ``dense``, ``words``, ``window_dense`` or ``window_words``."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk that may answer the question."""

    id: str
    document_id: str
    chunk_index: int
    title: str
    heading: str
    """The headings it stands under, outermost first, joined by `` > ``."""
    text: str
    source: str
    """The document's path."""
    scores: Mapping[Lane, float]
    """Raw, in the lanes of the index that found it: cosine by meaning, BM25 by words."""
    match: float = 0.0
    """How well it matches by `memory.documents.rerank.fused`, 0.0 to 1.0."""


class Reranker(Protocol):
    async def __call__(
        self, query: str, candidates: Sequence[Candidate], limit: int
    ) -> list[tuple[str, float]]:
        """The ids of at most `limit` of them, best first, with scores from 0.0 to 1.0. Those left out do not
        bear on the question. May raise: then the search goes by the fused order."""
        ...
