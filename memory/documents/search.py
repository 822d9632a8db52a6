"""Finding chunks: the index proposes, the record decides who may read, a reranker says what is best."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memory.audience import Audience
from memory.documents.rerank import Candidate, Reranker
from memory.documents.rerank.fused import diverse, matching, stems
from memory.documents.store import DocumentStore, StoredChunk
from memory.errors import EmbedderUnavailable
from memory.index import Index, Kind, Question, Rankings
from memory.index.embedders import Embedder
from memory.records import Chunk
from memory.search.explanation import EXCERPT
from memory.spans import note, span

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

log = logging.getLogger("hachi.knowledge")

CHUNKS: frozenset[Kind] = frozenset({"chunk"})
CANDIDATES = 50
"""Chunks that are reranked."""
NEAR = 0.3
"""Cosine from which meaning alone speaks for a chunk, where the embedder's own threshold is lower: on
Django's documentation it loses no answer, and twelve questions about other things bring 5 chunks, not 54."""
SHARED = 2
"""Words that a chunk shares with the question bear on it, where its meaning does not: so many, or all."""


class Search:
    def __init__(
        self,
        documents: DocumentStore,
        index: Index,
        embedder: Embedder,
        clock: Callable[[], datetime],
        reranker: Reranker,
    ) -> None:
        self._documents = documents
        self._index = index
        self._embedder = embedder
        self._clock = clock
        self._reranker = reranker

    async def __call__(self, query: str, audience: Audience, limit: int) -> list[Chunk]:
        """At most `limit` chunks, best first. Raises IndexUnavailable."""
        with span("documents", query=query, audience=audience.keys, limit=limit):
            return await self._search(query, audience, limit)

    async def _search(self, query: str, audience: Audience, limit: int) -> list[Chunk]:
        vector = await self._vector(query)
        lanes = _by_chunk(
            await self._index.search(
                Question(audience.keys, self._clock(), vector, query, kinds=CHUNKS, limit=CANDIDATES)
            )
        )
        rows = await self._documents.by_ids(lanes.keys(), audience)
        found = [_candidate(rows[id], scores) for id, scores in lanes.items() if id in rows]
        best = _best(query, _once(found))
        bearing = self._bearing(query, best) if vector is not None else best
        candidates = {candidate.id: candidate for candidate in bearing}
        ranked = await self._ranked(query, list(candidates.values()), limit)
        note(candidates=_Weighed(best, frozenset(candidates), tuple(ranked)), found=ranked)
        return [_chunk(candidates[id], score) for id, score in ranked]

    async def _vector(self, query: str) -> "NDArray[np.float32] | None":
        try:
            [vector] = await self._embedder.embed([query])
        except EmbedderUnavailable as error:
            log.warning("searching documents by words alone: %s", error)
            return None
        return vector

    def _bearing(self, query: str, found: Iterable[Candidate]) -> Iterable[Candidate]:
        """Those near enough in meaning, or in words: of fifty nearest chunks all may be far."""
        asked = stems(query)
        enough = min(SHARED, len(asked)) or SHARED
        for candidate in found:
            near = candidate.scores.get("dense", 0.0) >= max(NEAR, self._embedder.thresholds.recall)
            if near or len(asked & stems(f"{candidate.heading}\n{candidate.text}")) >= enough:
                yield candidate

    async def _ranked(
        self, query: str, candidates: Sequence[Candidate], limit: int
    ) -> list[tuple[str, float]]:
        if not candidates:
            return []
        try:
            ranked = await self._reranker(query, candidates, limit)
        except Exception as error:  # a model, a network, somebody's own: none may take the answer away
            log.warning("the reranker failed, the fused order is taken: %s", error)
            ranked = diverse(candidates, limit)
        left = {candidate.id for candidate in candidates}
        kept = []
        for id, score in ranked:
            if id in left:  # a model may make ids up, or say one twice
                left.discard(id)
                kept.append((id, min(1.0, max(0.0, score))))
        return kept[:limit]


@dataclass(frozen=True, slots=True)
class _Weighed:
    """What a look-up had before it, and why each was left out."""

    best: Sequence[Candidate]
    bearing: frozenset[str]
    ranked: tuple[tuple[str, float], ...]

    def to_trace(self) -> list[dict[str, Any]]:
        scores = dict(self.ranked)
        return [self._one(candidate, scores) for candidate in self.best]

    def _one(self, candidate: Candidate, scores: Mapping[str, float]) -> dict[str, Any]:
        told = {
            "id": candidate.id,
            "kind": "chunk",
            "source": candidate.source,
            "content": f"{candidate.heading}: {candidate.text}"[:EXCERPT],
            "lanes": {name: round(score, 4) for name, score in candidate.scores.items()},
        }
        if candidate.id in scores:
            return told | {"score": round(scores[candidate.id], 4)}
        far = candidate.id not in self.bearing
        return told | {"left_out": "far in meaning and in words" if far else "others are better"}


def _best(query: str, found: Sequence[Candidate]) -> list[Candidate]:
    """The first so many: two lanes may bring twice as many as are reranked."""
    scores = matching(query, found)
    order = sorted(found, key=lambda c: (-scores[c.id], c.source, c.chunk_index, c.id))
    return [replace(candidate, match=scores[candidate.id]) for candidate in order[:CANDIDATES]]


def _once(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Each text once, as where the same file was added for several owners."""
    return list(
        {(c.heading, c.text): c for c in sorted(candidates, key=lambda c: c.id, reverse=True)}.values()
    )


def _by_chunk(found: Rankings) -> dict[str, dict[str, float]]:
    lanes: dict[str, dict[str, float]] = {}
    for name in ("dense", "words"):
        for hit in getattr(found, name):
            lanes.setdefault(hit.id, {})[name] = hit.score
    return lanes


def _candidate(row: StoredChunk, scores: Mapping[str, float]) -> Candidate:
    return Candidate(
        id=row.id,
        document_id=row.document_id,
        chunk_index=row.chunk_index,
        title=row.title,
        heading=row.heading,
        text=row.text,
        source=row.path,
        scores=scores,
    )


def _chunk(candidate: Candidate, score: float) -> Chunk:
    return Chunk(
        id=candidate.id,
        text=candidate.text,
        source=candidate.source,
        chunk_index=candidate.chunk_index,
        title=candidate.title,
        heading=candidate.heading,
        score=score,
    )
