"""Cross-encoders, which read the query and a chunk together: slower than fused scores, and often better.

Run by fastembed, an optional extra, which downloads the model at the first query.
"""

import asyncio
import math
from collections.abc import Sequence
from typing import Any

from memory.documents.rerankers import Candidate
from memory.index.embedders.fastembed import load_model
from memory.index.embedders.vectors import readable

MAX_BYTES = 8_000
"""Bytes of a text that are read; these models take about 512 tokens."""


class CrossEncoderReranker:
    """Calling it raises EmbedderUnavailable if fastembed is not installed or has no such model."""

    def __init__(self, model: str) -> None:
        self.model = model
        self._loaded: Any = None
        self._lock = asyncio.Lock()

    async def __call__(
        self, query: str, candidates: Sequence[Candidate], limit: int
    ) -> list[tuple[str, float]]:
        if not candidates:
            return []
        texts = [readable(f"{c.heading}\n{c.text}".strip(), MAX_BYTES) for c in candidates]
        async with self._lock:  # one query at a time: the model uses all cores
            scores = await asyncio.to_thread(self._scores, readable(query, MAX_BYTES), texts)
        order = sorted(zip(candidates, scores, strict=True), key=lambda p: (-p[1], -p[0].match, p[0].id))
        return [(candidate.id, score) for candidate, score in order[:limit]]

    def _scores(self, query: str, texts: list[str]) -> list[float]:
        if self._loaded is None:
            self._loaded = load_model("fastembed.rerank.cross_encoder", "TextCrossEncoder", self.model)
        return [_probability(float(score)) for score in self._loaded.rerank(query, texts)]


def _probability(logit: float) -> float:
    """A probability from 0.0 to 1.0; 0.0 if the logit is not a number."""
    return 0.0 if math.isnan(logit) else 1.0 / (1.0 + math.exp(-max(-60.0, min(60.0, logit))))
