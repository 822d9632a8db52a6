"""Find chunks: the index proposes candidates, SQL decides who may read them, and a few are selected."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from rapidfuzz import fuzz

from memory.audience import Audience
from memory.documents.store import DocumentStore
from memory.index import CHUNKS, Question
from memory.index.bm25 import stems
from memory.index.embedders import Embedder, embed_if_possible
from memory.index.indexing import Indexing
from memory.process.spans import MARK, note, span
from memory.records import Chunk

WEIGHTS = {"dense": 1.0, "words": 1.0}
HEADING = 0.25
"""Weight of the share of the query's words that are in the title or the headings."""
SUPPORT = 0.75
"""Weight of the mean score of the document's best `SUPPORTERS` chunks."""
SUPPORTERS = 3
SAME_DOCUMENT = 0.8
"""Factor on a chunk's score for each chunk of the same document that is ranked before it."""
NEAR_COPY = 0.5
"""Factor if a chunk resembles one ranked before it, by a similarity (0 to 100) of `SIMILAR` or more."""
SIMILAR = 90.0
FULL_LANE = 50
"""In a lane with this many hits, the last counts as no match; in a shorter lane it still counts in part."""
_MAX_SCORE = (sum(WEIGHTS.values()) + HEADING) * (1.0 + SUPPORT)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage that may answer the query."""

    chunk: Chunk
    document_id: str
    scores: Mapping[str, float]
    """Raw scores by index lane: cosine for ``dense``, BM25 for ``words``."""
    match: float = 0.0
    """The fused score, 0.0 to 1.0."""

    @property
    def id(self) -> str:
        return self.chunk.id


def match_scores(query: str, candidates: Sequence[Candidate]) -> dict[str, float]:
    """Return how well each candidate matches the query, 0.0 to 1.0 by id."""
    lanes = {lane: _scaled(lane, candidates) for lane in WEIGHTS}
    asked = stems(query)
    own: dict[str, float] = {}
    of_document: dict[str, list[float]] = defaultdict(list)
    for c in candidates:
        by_lanes = sum(weight * lanes[lane].get(c.id, 0.0) for lane, weight in WEIGHTS.items())
        in_headings = len(asked & stems(f"{c.chunk.title}\n{c.chunk.heading}")) / max(1, len(asked))
        own[c.id] = by_lanes + HEADING * in_headings
        of_document[c.document_id].append(own[c.id])
    support = {id: sum(sorted(of, reverse=True)[:SUPPORTERS]) / SUPPORTERS for id, of in of_document.items()}
    return {c.id: (own[c.id] + SUPPORT * support[c.document_id]) / _MAX_SCORE for c in candidates}


def diverse(candidates: Sequence[Candidate], limit: int) -> list[tuple[str, float]]:
    """Rank at most `limit` candidates by `match`, lowered by similar ones ranked before."""
    scores = {candidate.id: candidate.match for candidate in candidates}
    left = {candidate.id: candidate for candidate in candidates}
    before: dict[str, int] = defaultdict(int)
    ranked: dict[str, float] = {}
    texts: list[str] = []
    compared: set[str] = set()

    def score(candidate: Candidate) -> float:
        return scores[candidate.id] * SAME_DOCUMENT ** before[candidate.document_id]

    while left and len(ranked) < limit:
        best = min(left.values(), key=lambda c: (-score(c), c.chunk.source, c.chunk.chunk_index, c.id))
        if best.id not in compared:  # only when it would be next, because most are never compared
            compared.add(best.id)
            if any(fuzz.ratio(best.chunk.text, text, score_cutoff=SIMILAR) for text in texts):
                scores[best.id] *= NEAR_COPY
                continue
        ranked[best.id] = score(best)
        before[best.document_id] += 1
        texts.append(best.chunk.text)
        del left[best.id]
    return list(ranked.items())


def _scaled(lane: str, candidates: Sequence[Candidate]) -> dict[str, float]:
    """Scale a lane's raw scores to 0.0-1.0, as in `memory.search.ranking`."""
    hits = {c.id: score for c in candidates if (score := c.scores.get(lane, 0.0)) > 0.0}
    if not hits:
        return {}
    top = max(hits.values())
    bottom = min(hits.values()) * min(1.0, (len(hits) - 1) / FULL_LANE)
    return {id: (score - bottom) / (top - bottom) if top > bottom else 1.0 for id, score in hits.items()}


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
