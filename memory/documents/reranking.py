"""Rank the passages that the index proposes, and select the few best ones.

The index's scores are fused with features of the text, and near copies lowered. The weights are the middle of
a plateau on Django's documentation (`benchmarks/knowledge.py`). The share of the query's words, and pairs of
them, were tried too: BM25 covers both.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rapidfuzz import fuzz

from memory.index.bm25 import stems
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
