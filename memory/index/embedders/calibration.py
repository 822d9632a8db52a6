"""Measures the thresholds of an embedder, and keeps them in `embedders.json` in the data folder.

`calibration.toml` has the pairs of lines, a few dozen in six languages. That is enough to place the scale of
an embedder, which may call unrelated lines 0.1 alike or 0.7, and too little to tell close thresholds apart.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from memory.errors import EmbedderUnavailable
from memory.index.embedders import Embedder
from memory.index.embedders.thresholds import Thresholds

FILE = "embedders.json"
STEP = 0.01


@dataclass(frozen=True, slots=True)
class Calibration:
    """Cosines of the pairs, in ascending order, and the thresholds that follow from them."""

    same: tuple[float, ...]
    different: tuple[float, ...]
    """Of lines that resemble each other and say different things."""
    answered: tuple[float, ...]
    """Of questions with the lines that answer them."""
    unanswered: tuple[float, ...]
    """Of questions with the other lines."""
    thresholds: Thresholds


async def calibrate(embedder: Embedder) -> Calibration:
    """Embed the pairs and compare them. `dedupe` is just above all pairs that say different things;
    `recall` is where the shares of answers and of other lines that reach it are furthest apart. Raises
    EmbedderUnavailable."""
    pairs = _pairs()
    lines = [line for group in pairs.values() for pair in group for line in pair]
    vectors = dict(zip(lines, await embedder.embed(lines), strict=True))

    def cosines(group: Sequence[Sequence[str]]) -> tuple[float, ...]:
        return tuple(sorted(float(vectors[one] @ vectors[other]) for one, other in group))

    questions, answers = zip(*pairs["answered"], strict=True)
    others = [(q, a) for at, q in enumerate(questions) for n, a in enumerate(answers) if n != at]
    different, answered, unanswered = (
        cosines(group) for group in (pairs["different"], pairs["answered"], others)
    )
    thresholds = Thresholds(dedupe=_above(different[-1]), recall=_furthest(answered, unanswered))
    return Calibration(cosines(pairs["same"]), different, answered, unanswered, thresholds)


def stored_thresholds(home: Path, name: str) -> Thresholds | None:
    """The thresholds that were measured here for the embedder of this name. Raises EmbedderUnavailable if
    the file is damaged."""
    found = _stored(home).get(name)
    return Thresholds(**found) if found else None


def store_thresholds(home: Path, name: str, thresholds: Thresholds) -> None:
    file = home / FILE
    new = file.with_suffix(".new")
    new.write_text(json.dumps(_stored(home) | {name: asdict(thresholds)}, indent=2) + "\n")
    new.replace(file)


def _stored(home: Path) -> dict[str, dict[str, float]]:
    file = home / FILE
    try:
        found: dict[str, dict[str, float]] = json.loads(file.read_text())
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise EmbedderUnavailable(
            f"{file} cannot be read ({error}); delete it, and run `hachi embedders calibrate`"
        ) from error
    return found


@cache
def _pairs() -> dict[str, list[list[str]]]:
    import tomllib

    return tomllib.loads((files(__package__) / "calibration.toml").read_text("utf-8"))


def _above(cosine: float) -> float:
    return min(round(int(cosine / STEP + 1) * STEP, 2), 1.0)


def _furthest(answered: Sequence[float], unanswered: Sequence[float]) -> float:
    def apart(threshold: float) -> float:
        shares = [sum(c >= threshold for c in cosines) / len(cosines) for cosines in (answered, unanswered)]
        return shares[0] - shares[1]

    return max((round(at * STEP, 2) for at in range(100)), key=apart)
