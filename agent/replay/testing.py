"""For tests made of traces: take the turn of a fixture again, and say what came of it.

turn = take_again(Path(__file__).with_name("trace_8f3a1b2c.json"))
assert turn.called == ["search_memories"]
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agent.companion import Companion
from agent.models.choose import choose_model
from agent.replay import fixture as fixtures
from agent.replay import taking
from agent.replay.fixture import Fixture
from agent.tracing.compare import sections
from agent.tracing.trace import Trace
from memory.audience import Place


@dataclass(frozen=True, slots=True)
class Called:
    """A tool that the model called."""

    name: str
    arguments: Mapping[str, Any]
    ok: bool
    result: Mapping[str, Any]
    """What the model got back."""


@dataclass(frozen=True, slots=True)
class TurnAgain:
    """What a turn came to when it was taken again with the model's recorded answers."""

    trace: Trace

    @property
    def reply(self) -> str:
        return str(self.trace.root.data.get("reply", {}).get("message", ""))

    @property
    def error(self) -> str | None:
        return self.trace.root.error

    @property
    def tools(self) -> list[Called]:
        return [_called(span.name, span.data) for span in self.trace.spans("tool")]

    @property
    def called(self) -> list[str]:
        """The names of the tools, in order."""
        return [tool.name for tool in self.tools]

    @property
    def found(self) -> list[str]:
        """What the searches brought the model, best first."""
        searches = [span.data for span in self.trace.spans("search")]
        texts = {
            one["id"]: one["content"]
            for data in searches
            for one in data.get("candidates", ())
            if "content" in one
        }
        found = [id for data in searches for id, _ in data.get("found", ())]
        return [texts[id] for id in dict.fromkeys(found) if id in texts]

    @property
    def audience(self) -> set[str]:
        """Whose memories were searched: ``user:U``, ``place:P``, ``global``."""
        return {
            key for span in self.trace.spans("search", "documents") for key in span.data.get("audience", ())
        }

    @property
    def place(self) -> str:
        """Where the answer went: ``dm``, or the names of the place joined by ``/``."""
        return str(Place.of_key(self.trace.summary.place))

    @property
    def decided(self) -> list[tuple[str, str]]:
        """What was done about what was to be remembered: (action, content)."""
        decisions = [d for span in self.trace.spans("decision") for d in span.data.get("decisions", ())]
        return [(decision["action"], decision["content"]) for decision in decisions]

    @property
    def to_remember(self) -> list[str]:
        """What the answer itself asked to be remembered."""
        answers = [span.data.get("answer") or {} for span in self.trace.spans("answer")]
        return [memory["content"] for answer in answers for memory in answer.get("memories", ())]

    @property
    def prompt(self) -> dict[str, str]:
        """What the model was told first, by section."""
        call = next(self.trace.spans("call"), None)
        request = call.data.get("request", {}) if call else {}
        return sections(self.trace, request.get("system") or "")


def take_again(fixture: Path | Fixture) -> TurnAgain:
    """On today's code and prompts; no network, no key. Raises ValueError where the file is no fixture."""
    whole = Fixture.from_json(fixture.read_text(encoding="utf-8")) if isinstance(fixture, Path) else fixture
    return asyncio.run(taken_again(whole))


async def taken_again(fixture: Fixture) -> TurnAgain:
    """The same, where a loop is running already."""
    settings = fixtures.settings_of(fixture)

    async def fill(scratch: Companion) -> None:
        await fixtures.fill(scratch, fixture.rows)

    chosen = replace(choose_model(settings), structured=fixture.settings.get("structured") or "none")
    trace = await taking.take_again(
        fixture.trace, settings, chosen, fill, taking.Way(persona=fixture.persona)
    )
    return TurnAgain(trace)


def _called(name: str, data: Mapping[str, Any]) -> Called:
    return Called(name, _object(data.get("arguments")), data.get("ok") is True, _object(data.get("result")))


def _object(text: Any) -> Mapping[str, Any]:
    try:
        value = json.loads(text or "{}")
    except ValueError:
        value = {"text": text}
    return value if isinstance(value, dict) else {"value": value}
