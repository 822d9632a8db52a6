"""Finds chunks: the index proposes candidates, SQL decides who may read them, a reranker orders them."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memory.audience import Audience
from memory.documents.rerankers import Candidate, Reranker
from memory.documents.rerankers.fused import diverse, match_scores
from memory.documents.store import DocumentStore
from memory.errors import EmbedderUnavailable
from memory.index import CHUNKS, Question, Rankings
from memory.index.bm25 import stems
from memory.index.embedders import Embedder
from memory.index.indexing import Indexing
from memory.process.spans import MARK, note, span
from memory.records import Chunk

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

log = logging.getLogger("hachi.knowledge")

EXCERPT = 200
"""The most characters of a candidate in a trace."""
CANDIDATES = 50
"""How many chunks are reranked."""
MIN_COSINE = 0.3
"""From this cosine on, meaning alone makes a chunk relevant; the embedder's threshold may be higher. On
Django's documentation this loses no answer, and twelve off-topic questions return 5 chunks instead of 54."""
SHARED_WORDS = 2
"""Below `MIN_COSINE`, a chunk is relevant if it shares this many words with the query, or all."""


@dataclass(frozen=True)
class DocumentSearch:
    store: DocumentStore
    indexing: Indexing
    embedder: Embedder
    clock: Callable[[], datetime]
    reranker: Reranker

    async def __call__(self, query: str, audience: Audience, limit: int) -> list[Chunk]:
        """At most `limit` chunks, best first."""
        with span("documents", query=query, audience=audience.keys, limit=limit):
            vector = await self._vector(query)
            best = await self._candidates(query, vector, audience)
            asked = stems(query)
            relevant = {c.id: c for c in best if vector is None or self._is_relevant(asked, c)}
            ranked = await self._rerank(query, list(relevant.values()), limit)
            note(candidates=_Considered(best, frozenset(relevant), dict(ranked)), found=ranked)
            return [_chunk(relevant[id], score) for id, score in ranked]

    async def _vector(self, query: str) -> "NDArray[np.float32] | None":
        try:
            [vector] = await self.embedder.embed([query])
        except EmbedderUnavailable as error:
            log.warning("searching documents by words alone: %s", error)
            return None
        return vector

    async def _candidates(
        self, query: str, vector: "NDArray[np.float32] | None", audience: Audience
    ) -> list[Candidate]:
        """The best candidates by fused score, at most `CANDIDATES`. Two lanes may return twice as many."""
        question = Question(audience.keys, self.clock(), vector, query, kinds=CHUNKS, limit=CANDIDATES)
        rankings = await self.indexing.search(question)
        lanes = _scores_by_chunk(rankings)
        rows = await self.store.chunks(lanes.keys(), audience)
        # If several owners added a file, keep one chunk of each text: that with the lowest id.
        rows.sort(key=lambda row: row.id, reverse=True)
        unique = {(row.heading, row.text): row for row in rows}
        found = [
            Candidate(r.id, r.document_id, r.chunk_index, r.title, r.heading, r.text, r.path, lanes[r.id])
            for r in unique.values()
        ]
        scores = match_scores(query, found)
        order = sorted(found, key=lambda c: (-scores[c.id], c.source, c.chunk_index, c.id))
        return [replace(candidate, match=scores[candidate.id]) for candidate in order[:CANDIDATES]]

    def _is_relevant(self, asked: frozenset[int], candidate: Candidate) -> bool:
        """Whether meaning or words are similar enough. Even the nearest chunks may be irrelevant."""
        if candidate.scores.get("dense", 0.0) >= max(MIN_COSINE, self.embedder.thresholds.recall):
            return True
        shared = asked & stems(f"{candidate.heading}\n{candidate.text}")
        return len(shared) >= (min(SHARED_WORDS, len(asked)) or SHARED_WORDS)

    async def _rerank(
        self, query: str, candidates: Sequence[Candidate], limit: int
    ) -> list[tuple[str, float]]:
        if not candidates:
            return []
        try:
            ranked = await self.reranker(query, candidates, limit)
        except Exception as error:  # a reranker may raise anything; the search must still answer
            log.warning("the reranker failed, keeping the fused order: %s", error)
            ranked = diverse(candidates, limit)
        known = {candidate.id for candidate in candidates}
        scores: dict[str, float] = {}
        for id, score in ranked:
            if id in known:  # a model may invent ids or repeat one
                scores.setdefault(id, min(1.0, max(0.0, score)))
        return list(scores.items())[:limit]


@dataclass(frozen=True, slots=True)
class _Considered:
    """The candidates of one search, for the trace: each with its score or the reason for leaving it out."""

    candidates: Sequence[Candidate]
    relevant: frozenset[str]
    scores: Mapping[str, float]

    def to_trace(self) -> list[dict[str, Any]]:
        return [
            {
                **self._verdict(candidate),
                "kind": "chunk",
                "lanes": {name: round(score, 4) for name, score in candidate.scores.items()},
            }
            for candidate in self.candidates
        ]

    def _verdict(self, one: Candidate) -> dict[str, Any]:
        """Return a found candidate with its text and score, or the marked id of one that was left out."""
        if one.id in self.scores:
            text = f"{one.heading}: {one.text}"[:EXCERPT]
            return {
                "id": one.id,
                "source": one.source,
                "content": text,
                "score": round(self.scores[one.id], 4),
            }
        why = "others are better" if one.id in self.relevant else "far in meaning and in words"
        return {"id": f"{MARK}{one.id}", "left_out": why}


def _scores_by_chunk(found: Rankings) -> dict[str, dict[str, float]]:
    lanes: dict[str, dict[str, float]] = {}
    for name in ("dense", "words"):
        for hit in getattr(found, name):
            lanes.setdefault(hit.id, {})[name] = hit.score
    return lanes


def _chunk(c: Candidate, score: float) -> Chunk:
    return Chunk(c.id, c.text, c.source, c.chunk_index, c.title, c.heading, score)
