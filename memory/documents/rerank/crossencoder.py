"""A cross-encoder reads the question and a chunk together: slower than any fusion, and often better.

Run by fastembed, an optional extra. The model is downloaded when it is first asked.
"""

import asyncio
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from memory.documents.rerank import Candidate
from memory.errors import EmbedderUnavailable
from memory.index.embedders.vectors import readable

DEFAULT = "Xenova/ms-marco-MiniLM-L-6-v2"
LONGEST = 8_000
"""Bytes that are read of one chunk; these models take 512 tokens or so."""


class Model(Protocol):
    """The part of fastembed's ``TextCrossEncoder`` that is used."""

    def rerank(self, query: str, documents: Iterable[str]) -> Iterable[float]: ...


class CrossEncoderReranker:
    """Raises `EmbedderUnavailable` when called where fastembed is not installed or has no such model."""

    def __init__(self, model: str = DEFAULT) -> None:
        self.model = model
        self._running: Model | None = None
        self._lock = asyncio.Lock()

    async def __call__(
        self, query: str, candidates: Sequence[Candidate], limit: int
    ) -> list[tuple[str, float]]:
        if not candidates:
            return []
        texts = [readable(f"{c.heading}\n{c.text}".strip(), LONGEST) for c in candidates]
        async with self._lock:  # one at a time: the model takes all cores
            if self._running is None:
                self._running = await asyncio.to_thread(_load, self.model)
            scores = await asyncio.to_thread(_run, self._running, readable(query, LONGEST), texts)
        ranked = sorted(
            zip(candidates, scores, strict=True), key=lambda pair: (-pair[1], -pair[0].match, pair[0].id)
        )
        return [(candidate.id, score) for candidate, score in ranked[:limit]]


def _run(running: Model, query: str, texts: list[str]) -> list[float]:
    return [_share(float(score)) for score in running.rerank(query, texts)]


def _share(score: float) -> float:
    """A logit as 0.0 to 1.0; what is no number counts for nothing."""
    if math.isnan(score):
        return 0.0
    return 1.0 / (1.0 + math.exp(-max(-60.0, min(60.0, score))))


def _load(model: str) -> Model:
    make = _fastembed()
    try:
        return make(model)
    except Exception as error:  # whatever fastembed, its runtime or the download raises
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise EmbedderUnavailable(
            f"the cross-encoder {model} cannot be loaded ({reason}); choose one of "
            "fastembed.rerank.cross_encoder.TextCrossEncoder.list_supported_models()"
        ) from error


def _fastembed() -> Callable[[str], Model]:
    try:
        from fastembed.rerank.cross_encoder import TextCrossEncoder
    except ImportError as error:
        raise EmbedderUnavailable(
            "cross-encoders of fastembed are not installed: pip install 'hachi[fastembed]'"
        ) from error
    make: Callable[[str], Model] = TextCrossEncoder
    return make
