"""The default order: the index's lanes put together with what the texts show, and no five copies of the same.
Pure and deterministic; needs no model.

`matching` is done over all that the index found, and also says which fifty any reranker gets to see. Weights
are the middle of a plateau on the documentation of Django (`benchmarks/knowledge.py`). The share of the
question's words that a chunk holds, and pairs of them that stand together, were tried as well: with BM25
among the lanes neither found more.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache

from rapidfuzz import fuzz

from memory.documents.rerank import Candidate
from memory.index import bm25 as words

WEIGHTS = {"dense": 1.0, "words": 1.0}
HEADING = 0.25
"""For the share of the question's words that the title and the headings hold."""
SUPPORT = 0.75
"""For the mean of the best `SUPPORTERS` chunks of the same document: one that says much on it is about it."""
SUPPORTERS = 3
ANOTHER = 0.8
"""What is left of a chunk's score for each chunk of the same document that stands before it …"""
REPEATED = 0.5
"""… and where it reads nearly like one that does, from `REPEAT` (0 to 100) on."""
REPEAT = 90.0

FULL_LANE = 50
"""From so many hits on, the last of a lane counts as no match; in a shorter lane it still counts in part."""
_MOST = (sum(WEIGHTS.values()) + HEADING) * (1.0 + SUPPORT)


class FusedReranker:
    async def __call__(
        self, query: str, candidates: Sequence[Candidate], limit: int
    ) -> list[tuple[str, float]]:
        return diverse(candidates, limit)


def matching(query: str, candidates: Sequence[Candidate]) -> dict[str, float]:
    """How well each of all these matches, whatever else is chosen: 0.0 to 1.0 by id."""
    matched = _matched(query, candidates)
    of_document: dict[str, list[float]] = defaultdict(list)
    for candidate in candidates:
        of_document[candidate.document_id].append(matched[candidate.id])
    support = {id: sum(sorted(of, reverse=True)[:SUPPORTERS]) / SUPPORTERS for id, of in of_document.items()}
    return {c.id: (matched[c.id] + SUPPORT * support[c.document_id]) / _MOST for c in candidates}


def diverse(candidates: Sequence[Candidate], limit: int) -> list[tuple[str, float]]:
    """At most `limit` of them by how they match, each lowered by what stands before it and is like it."""
    scores = {candidate.id: candidate.match for candidate in candidates}
    waiting = {candidate.id: candidate for candidate in candidates}
    before: dict[str, int] = defaultdict(int)
    chosen: list[tuple[str, float]] = []
    texts: list[str] = []
    compared: set[str] = set()

    def rest(candidate: Candidate) -> float:
        return scores[candidate.id] * ANOTHER ** before[candidate.document_id]

    while waiting and len(chosen) < limit:
        best = min(waiting.values(), key=lambda c: (-rest(c), c.source, c.chunk_index, c.id))
        # Compared with what stands before it only once it is next: most never are.
        if best.id not in compared:
            compared.add(best.id)
            if any(fuzz.ratio(best.text, text, score_cutoff=REPEAT) for text in texts):
                scores[best.id] *= REPEATED
                continue
        chosen.append((best.id, rest(best)))
        before[best.document_id] += 1
        texts.append(best.text)
        del waiting[best.id]
    return chosen


def stems(text: str) -> frozenset[int]:
    """The words of a text as the index compares them, without those that say nothing."""
    vector = words.query(text)
    return frozenset(vector.indices) if vector else frozenset()


@lru_cache(maxsize=4096)  # the same headings come up again and again
def _named(title: str, heading: str) -> frozenset[int]:
    return stems(f"{title}\n{heading}")


def _matched(query: str, candidates: Sequence[Candidate]) -> Mapping[str, float]:
    """How well each matches by itself, from 0.0 to the sum of the weights."""
    lanes = {lane: _scaled(lane, candidates) for lane in WEIGHTS}
    asked = stems(query)
    found = {}
    for candidate in candidates:
        by_lanes = sum(weight * lanes[lane].get(candidate.id, 0.0) for lane, weight in WEIGHTS.items())
        named = asked & _named(candidate.title, candidate.heading)
        found[candidate.id] = by_lanes + HEADING * len(named) / max(1, len(asked))
    return found


def _scaled(lane: str, candidates: Sequence[Candidate]) -> dict[str, float]:
    """A lane's raw scores brought to 0.0-1.0, as `memory.search.ranking` does it."""
    hits = {c.id: score for c in candidates if (score := c.scores.get(lane, 0.0)) > 0.0}
    if not hits:
        return {}
    top = max(hits.values())
    foot = min(hits.values()) * min(1.0, (len(hits) - 1) / FULL_LANE)
    return {id: (score - foot) / (top - foot) if top > foot else 1.0 for id, score in hits.items()}
