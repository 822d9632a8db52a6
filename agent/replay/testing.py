"""For tests made of traces: replay the turn of a fixture, and look at what came of it.

turn = take_again(Path(__file__).with_name("trace_8f3a1b2c.json"))
assert turn.called == ["search_memories"]
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agent.models.choose import choose_model
from agent.replay.fixture import Fixture
from agent.replay.replay import ReplayOptions, run_turn
from agent.tracing.compare import sections
from agent.tracing.trace import Trace, read_data, scored_ids
from memory.audience import Place
from memory.process.spans import Span


@dataclass(frozen=True, slots=True)
class Called:
    """A tool call."""

    name: str
    arguments: Mapping[str, Any]
    ok: bool
    result: Mapping[str, Any]
    """The result that the model received."""

    @classmethod
    def of(cls, span: Span) -> "Called":
        arguments, result = (_object(span.data.get(name)) for name in ("arguments", "result"))
        return cls(span.name, arguments, span.data.get("ok") is True, result)


@dataclass(frozen=True, slots=True)
class TurnAgain:
    """A replayed turn."""

    trace: Trace

    @property
    def reply(self) -> str:
        return str(read_data(self.trace.root, "reply", "message") or "")

    @property
    def error(self) -> str | None:
        return self.trace.root.error

    @property
    def tools(self) -> list[Called]:
        return [Called.of(span) for span in self.trace.spans("tool")]

    @property
    def called(self) -> list[str]:
        """The names of the tools, in order."""
        return [tool.name for tool in self.tools]

    @property
    def found(self) -> list[str]:
        """The texts that the searches returned, best first."""
        candidates = [one for span in self.trace.spans("search") for one in span.data.get("candidates", ())]
        texts = {one["id"]: one["content"] for one in candidates if "content" in one}
        found = [id for span in self.trace.spans("search") for id, _ in scored_ids(span)]
        return [texts[id] for id in dict.fromkeys(found) if id in texts]

    @property
    def audience(self) -> set[str]:
        """The owners whose memories were searched: ``user:U``, ``place:P``, ``global``."""
        searches = self.trace.spans("search", "documents")
        return {key for span in searches for key in span.data.get("audience", ())}

    @property
    def place(self) -> str:
        """The place of the answer: ``dm``, or the names of the place joined by ``/``."""
        return str(Place.of_key(self.trace.summary.place))

    @property
    def decided(self) -> list[tuple[str, str]]:
        """The decisions about new memories: (action, content)."""
        decisions = [d for span in self.trace.spans("decision") for d in span.data.get("decisions", ())]
        return [(decision["action"], decision["content"]) for decision in decisions]

    @property
    def to_remember(self) -> list[str]:
        """The memories that the answer itself asked to store."""
        answers = [span.data.get("answer") or {} for span in self.trace.spans("answer")]
        return [memory["content"] for answer in answers for memory in answer.get("memories", ())]

    @property
    def prompt(self) -> dict[str, str]:
        """The system message of the first call, by section."""
        call = next(self.trace.spans("call"), None)
        return sections(self.trace, (call and read_data(call, "request", "system")) or "")


def take_again(fixture: Path | Fixture) -> TurnAgain:
    """Replay a fixture with today's code and prompts, without network or key. Raises ValueError for another
    file."""
    whole = Fixture.from_json(fixture.read_text(encoding="utf-8")) if isinstance(fixture, Path) else fixture
    return asyncio.run(taken_again(whole))


async def taken_again(fixture: Fixture) -> TurnAgain:
    """Replay a fixture as `take_again` does, inside a running event loop."""
    settings = fixture.open_settings()
    chosen = replace(choose_model(settings), structured=fixture.settings.get("structured") or "none")
    options = ReplayOptions(persona=fixture.persona)
    return TurnAgain(await run_turn(fixture.trace, settings, chosen, fixture.fill, options))


def _object(text: Any) -> Mapping[str, Any]:
    try:
        value = json.loads(text or "{}")
    except ValueError:
        value = {"text": text}
    return value if isinstance(value, dict) else {"value": value}
