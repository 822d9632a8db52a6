"""Measure the thresholds of an embedder, for `THRESHOLDS` in memory/index/embedders/__init__.py.

    python benchmarks/calibrate.py openai:NAME

It uses the server at OPENAI_BASE_URL, with OPENAI_API_KEY. `data/calibration.toml` has a few dozen pairs of
texts in six languages. That is enough to find the scale of an embedder, whose cosine of unrelated texts may
be 0.1 or 0.7, but too few to decide between close thresholds.
"""

import asyncio
import os
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from memory.index.embedders import Embedder, Thresholds, open_embedder

PAIRS = Path(__file__).parent / "data" / "calibration.toml"


async def calibrate(embedder: Embedder) -> tuple[Thresholds, dict[str, list[float]]]:
    """Return the thresholds and the cosines of each group of pairs, in ascending order. `dedupe` is just
    above all pairs that say different things. `recall` is the value that the largest share of answers and the
    smallest share of other texts reach. Raises EmbedderUnavailable."""
    pairs = tomllib.loads(PAIRS.read_text("utf-8"))
    lines = [line for group in pairs.values() for pair in group for line in pair]
    vectors = dict(zip(lines, await embedder.embed(lines), strict=True))
    questions, answers = zip(*pairs["answered"], strict=True)
    pairs["unanswered"] = [[q, a] for at, q in enumerate(questions) for n, a in enumerate(answers) if n != at]
    found = {
        group: sorted(float(vectors[a] @ vectors[b]) for a, b in pairs[group])
        for group in ("same", "different", "answered", "unanswered")
    }
    dedupe = min(int(found["different"][-1] * 100 + 1) / 100, 1.0)
    steps = [step / 100 for step in range(100)]
    return Thresholds(dedupe, max(steps, key=lambda at: _share(found, at))), found


def _share(found: dict[str, list[float]], threshold: float) -> float:
    def reach(cosines: Sequence[float]) -> float:
        return sum(cosine >= threshold for cosine in cosines) / len(cosines)

    return reach(found["answered"]) - reach(found["unanswered"])


async def main(name: str) -> None:
    given = {key: os.environ.get(f"OPENAI_{key.upper()}") for key in ("api_key", "base_url")}
    thresholds, found = await calibrate(open_embedder(name, **given))
    for group, cosines in found.items():
        print(f"{group:10} {len(cosines):4} pairs: {cosines[0]:.2f} to {cosines[-1]:.2f}")
    print(f'"{name}": {thresholds},')


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
