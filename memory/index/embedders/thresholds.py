"""The thresholds of each embedder for the similarity of vectors."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Cosine similarities, 0.0 to 1.0, that are valid for one embedder only."""

    dedupe: float
    """From this similarity on, two texts may say the same thing."""
    recall: float
    """Below this similarity, a text is unrelated to the query in meaning."""


CAUTIOUS = Thresholds(dedupe=0.95, recall=0.3)
"""For an uncalibrated embedder: few texts count as the same. `benchmarks/calibrate.py` measures others."""

KNOWN = {
    "bundled": Thresholds(dedupe=0.94, recall=0.15),
    "openai:text-embedding-3-small": Thresholds(dedupe=0.85, recall=0.5),
}
"""`mistral-embed` is not listed: only its dimension is documented, so it gets the cautious thresholds."""


def thresholds_of(embedder: str) -> Thresholds:
    return KNOWN.get(embedder, CAUTIOUS)
