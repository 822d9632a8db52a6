"""A kit for tests of programs built on Hachi: a scripted model, a fixed clock, a companion in a temporary
folder. Nothing here needs a network or a key. docs/testing.md shows it. pytest gets the fixtures
`hachi_model`, `hachi_clock` and `hachi_companion` without an import.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agents import Model, ModelResponse, Usage
from agents.testing import ScriptedModel, assistant_message, function_call
from pydantic_settings import PydanticBaseSettingsSource
from typing_extensions import Unpack

from agent.replay.testing import take_again as take_again
from agent.types.options import OpenOptions
from hachi import Companion, Memory, Settings

I_SEE = {"message": "I see.", "memories": []}


def tool_call(name: str, **arguments: Any) -> list[Any]:
    """Make an answer that calls a tool, for `AnsweringModel`."""
    return [function_call(name, arguments, call_id=f"call_{name}")]


class AnsweringModel(Model):
    """Gives each of `answers` once, then always `then`, and records its calls.

    An answer is a text, an object to send as JSON, such as `{"message": "Hello.", "memories": []}`, a list
    of output items such as `tool_call(…)`, an exception to raise, or a function of the first message that
    returns one of these. Each call takes `seconds`.
    """

    def __init__(
        self, *answers: Any, then: Any = I_SEE, seconds: float = 0.0, hold: str | None = None
    ) -> None:
        self.asked: list[str] = []
        """The first message of each call."""
        self.systems: list[str] = []
        """The system message of each call."""
        self.inputs: list[Any] = []
        """All other messages of each call."""
        self.held, self.release = asyncio.Event(), asyncio.Event()
        """A call whose input contains `hold` sets `held` and waits for `release`."""
        self.answers = list(answers)
        """The answers still to come; a test may add to them."""
        self._then, self._seconds, self._hold = then, seconds, hold

    def shown(self) -> str:
        """All texts of the last call: instructions, messages and what tools answered."""
        last = self.inputs[-1]
        items = [last] if isinstance(last, str) else [one.get("content") or one.get("output") for one in last]
        return "\n".join([self.systems[-1], *map(str, items)])

    async def get_response(
        self, system_instructions: str | None, input: Any, *_: Any, **__: Any
    ) -> ModelResponse:
        self.systems.append(system_instructions or "")
        self.inputs.append(input)
        asked = input if isinstance(input, str) else input[0].get("content", "")
        self.asked.append(asked)
        if self._hold is not None and self._hold in str(input):
            self.held.set()
            await self.release.wait()
        await asyncio.sleep(self._seconds)
        answer = self.answers.pop(0) if self.answers else self._then
        if callable(answer):
            answer = answer(asked)
        if isinstance(answer, Exception):
            raise answer
        if not isinstance(answer, list):
            answer = [assistant_message(answer if isinstance(answer, str) else json.dumps(answer))]
        return ModelResponse(output=answer, usage=Usage(), response_id=None)

    async def stream_response(self, *args: Any, **rest: Any) -> AsyncIterator[Any]:
        """Answer in the events of a stream."""
        answer = await self.get_response(*args, **rest)
        async for event in ScriptedModel([answer.output]).stream_response(*args, **rest):
            yield event


@dataclass
class FixedClock:
    """A clock that does not move until it is advanced: `clock.advance(days=3)`."""

    now: datetime = field(default_factory=lambda: datetime(2026, 11, 21, 9, 30, tzinfo=UTC))

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **by: float) -> None:
        self.now += timedelta(**by)


class IsolatedSettings(Settings):
    """Settings with only the values that a test passes; the environment is ignored."""

    @classmethod
    def settings_customise_sources(
        cls, settings_cls: Any, init_settings: PydanticBaseSettingsSource, *_: Any, **__: Any
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (init_settings,)


@asynccontextmanager
async def temporary_companion(
    home: Path | None = None, settings: dict[str, Any] | None = None, **options: Unpack[OpenOptions]
) -> AsyncIterator[Companion]:
    """Open a companion in a new folder, which is removed at the end unless you pass it as `home`. It ignores
    the environment; the stand-in answers unless you pass a `model`. No periodic job runs."""
    with TemporaryDirectory(prefix="hachi-") as folder:
        own = IsolatedSettings.load(
            **{"home": home or Path(folder), "embedder": "bundled", **(settings or {})}
        )
        options.setdefault("periodic_jobs", False)
        async with Companion.open(own, **options) as pet:
            yield pet


async def assert_remembered(
    pet: Companion, words: str, *, user: str, place: str | None = None, subjects: Sequence[str] = ()
) -> Memory:
    """Return the newest memory of the user that contains the words, in any case, and has these subjects.
    Waits for the work of earlier turns first. Raises AssertionError, which lists the memories."""
    await pet.settle()
    memories = await pet.memories.list(user=user, place=place)
    for memory in memories:
        if words.casefold() in memory.content.casefold() and {*subjects} <= {*memory.subjects}:
            return memory
    there = "".join(f"\n- {memory.content} {[*memory.subjects]}" for memory in memories) or " nothing"
    raise AssertionError(f"{words!r} is not remembered of {user}, but:{there}")
