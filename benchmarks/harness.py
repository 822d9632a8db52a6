"""What the benchmarks share: a scripted model, a companion in a new data folder, options and reports."""

import argparse
import json
import math
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from agents import ModelResponse, Usage
from agents.models.interface import Model

from hachi import Companion, Settings
from memory.audience import PRIVATE, Audience
from memory.index import Question, Rankings
from tools.context import TurnContext

CONTROL = ("BEGIN", "COMMIT", "ROLLBACK", "PRAGMA")
"""How statements that read or change no rows begin."""


class Scripted(Model):
    """A model whose answer is what `answer` returns for the system message, the input and the tools."""

    def __init__(self, answer: Callable[[str, list[Any], list[Any]], Any]) -> None:
        self._answer = answer
        self.calls = 0

    async def get_response(
        self, system_instructions: str | None, input: Any, model_settings: Any, tools: Any, *_: Any, **__: Any
    ) -> ModelResponse:
        self.calls += 1
        items = [{"role": "user", "content": input}] if isinstance(input, str) else list(input)
        item = self._answer(system_instructions or "", items, tools)
        return ModelResponse(output=[item], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


@asynccontextmanager
async def new_companion(settings: Mapping[str, Any], **options: Any) -> AsyncIterator[Companion]:
    """Yield a companion in a temporary data folder, whose schedule does not run."""
    with tempfile.TemporaryDirectory() as home:
        loaded = Settings.load(home=Path(home), **{"embedder": "bundled"} | dict(settings))
        async with Companion.open(loaded, periodic_jobs=False, **options) as pet:
            yield pet


def tool_turn(pet: Companion, user: str, text: str = "") -> TurnContext:
    """Return the context that a tool gets in a turn of this person."""
    parts = pet.components
    memory = (parts.recall, parts.writer, parts.tasks, parts.documents)
    return TurnContext(user, PRIVATE, text, None, frozenset(), pet.clock, *memory)


async def lanes(pet: Companion, user: str, question: str, **asked: Any) -> Rankings:
    """Return the hits of words alone and of vectors alone among what the person may read, each best first."""
    [vector] = await pet.components.embedder.embed([question])
    wanted = Question(Audience.of(user).keys, pet.clock(), vector, question, **asked)
    return await pet.components.sync.search(wanted)


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the value that this share of them does not exceed."""
    return float(sorted(values)[math.ceil(percent / 100 * len(values)) - 1])


def arguments(doc: str | None, bars: bool = False) -> argparse.ArgumentParser:
    """Return a parser whose help is the benchmark's docstring. With `bars`, it has an option that changes
    bars."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="the figures as JSON")
    if bars:
        parser.add_argument("--bar", action="append", default=[], help="a figure's own bar: NAME=NUMBER")
    return parser


def bars_of(options: argparse.Namespace, bars: Mapping[str, float]) -> dict[str, float]:
    """Return the bars, with changes from the command line."""
    given = (bar.rpartition("=") for bar in options.bar)
    return {**bars, **{name: float(most) for name, _, most in given}}


def over(bars: Mapping[str, float], figures: Mapping[str, float]) -> list[str]:
    """Return a text for each figure that is higher than its bar."""
    return [
        f"{name}: {figures[name]:.3g}, not {most:g}" for name, most in bars.items() if figures[name] > most
    ]


def finish(options: argparse.Namespace, result: Mapping[str, Any], missed: Iterable[str] = ()) -> int:
    """Print the figures and the missed bars, and return the exit code."""
    if options.json:
        print(json.dumps(result, indent=2))
    else:
        print("\n".join(lines(result)))
    missed = list(missed)
    print("; ".join(missed) or "nothing is missed", file=sys.stderr)
    return 1 if missed else 0


def lines(result: Any, indent: str = "") -> Iterator[str]:
    """Yield each figure on its own line, and groups below their names."""
    for name, value in result.items():
        if isinstance(value, Mapping):
            yield f"{indent}{name}"
            yield from lines(value, f"{indent}  ")
        else:
            shown = f"{value:,.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else value
            yield f"{indent}{name:<{50 - len(indent)}} {shown}"
