"""Find chunks: the index proposes candidates, SQL decides who may read them, `reranking` orders them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from memory.audience import Audience
from memory.documents.reranking import Candidate, diverse, match_scores
from memory.documents.store import DocumentStore
from memory.index import CHUNKS, Question
from memory.index.bm25 import stems
from memory.index.embedders import Embedder, embed_if_possible
from memory.index.indexing import Indexing
from memory.process.spans import MARK, note, span
from memory.records import Chunk

EXCERPT = 200
"""The most characters of a candidate in a trace."""
CANDIDATES = 50
"""How many chunks are reranked."""
MIN_COSINE = 0.3
"""From this cosine on, a chunk is relevant by meaning alone; the embedder's threshold may be higher. On
Django's documentation this loses no answer, and twelve off-topic questions return 5 chunks instead of 54."""
SHARED_WORDS = 2
"""Below `MIN_COSINE`, a chunk is relevant if it shares this many words with the query, or all."""


@dataclass(frozen=True)
class DocumentSearch:
    store: DocumentStore
    indexing: Indexing
    embedder: Embedder
    clock: Callable[[], datetime]

    async def __call__(self, query: str, audience: Audience, limit: int) -> list[Chunk]:
        """Find at most `limit` chunks, best first."""
        with span("documents", query=query, audience=audience.keys, limit=limit):
            [vector] = await embed_if_possible(self.embedder, [query])
            best = await self._candidates(query, vector, audience)
            asked = stems(query)
            relevant = {c.id: c for c in best if vector is None or self._is_relevant(asked, c)}
            ranked = diverse(list(relevant.values()), limit)
            note(candidates=_Considered(best, frozenset(relevant), dict(ranked)), found=ranked)
            return [replace(relevant[id].chunk, score=score) for id, score in ranked]

    async def _candidates(self, query: str, vector: Any, audience: Audience) -> list[Candidate]:
        """Return the best candidates by fused score, at most `CANDIDATES`."""
        question = Question(audience.keys, self.clock(), vector, query, kinds=CHUNKS, limit=CANDIDATES)
        rankings = await self.indexing.search(question)
        lanes: dict[str, dict[str, float]] = {}
        for name in ("dense", "words"):
            for hit in getattr(rankings, name):
                lanes.setdefault(hit.id, {})[name] = hit.score
        rows = await self.store.chunks(lanes.keys(), audience) if lanes else []
        # If several owners added a file, keep one chunk of each text: that with the lowest id.
        rows.sort(key=lambda row: row.id, reverse=True)
        found = [
            Candidate(
                Chunk(r.id, r.text, r.path, r.chunk_index, r.title, r.heading), r.document_id, lanes[r.id]
            )
            for r in {(row.heading, row.text): row for row in rows}.values()
        ]
        scores = match_scores(query, found)
        order = sorted(found, key=lambda c: (-scores[c.id], c.chunk.source, c.chunk.chunk_index, c.id))
        return [replace(candidate, match=scores[candidate.id]) for candidate in order[:CANDIDATES]]

    def _is_relevant(self, asked: frozenset[int], candidate: Candidate) -> bool:
        """Return whether a chunk is similar enough by meaning or words. Even the nearest one may be
        irrelevant."""
        if candidate.scores.get("dense", 0.0) >= max(MIN_COSINE, self.embedder.thresholds.recall):
            return True
        shared = asked & stems(f"{candidate.chunk.heading}\n{candidate.chunk.text}")
        return len(shared) >= (min(SHARED_WORDS, len(asked)) or SHARED_WORDS)


@dataclass(frozen=True, slots=True)
class _Considered:
    """The candidates of one search, for the trace: each with its score or the reason for leaving it out."""

    candidates: Sequence[Candidate]
    relevant: frozenset[str]
    scores: Mapping[str, float]

    def to_trace(self) -> list[dict[str, Any]]:
        return [self._row(candidate) for candidate in self.candidates]

    def _row(self, one: Candidate) -> dict[str, Any]:
        """Return a candidate that was found with its text, or the marked id of one that was left out."""
        lanes = {name: round(score, 4) for name, score in one.scores.items()}
        if one.id in self.scores:
            text = f"{one.chunk.heading}: {one.chunk.text}"[:EXCERPT]
            row: dict[str, Any] = {"id": one.id, "source": one.chunk.source, "content": text}
            row["score"] = round(self.scores[one.id], 4)
        else:
            why = "others are better" if one.id in self.relevant else "far in meaning and in words"
            row = {"id": f"{MARK}{one.id}", "left_out": why}
        return row | {"kind": "chunk", "lanes": lanes}
