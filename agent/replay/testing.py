"""For tests made of traces: replay the turn of a file, and look at what came of it.

turn = take_again(Path(__file__).with_name("trace_8f3a1b2c.json"))
assert turn.called == ["search_memories"]
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from agent.models.choice.choose import choose_model
from agent.replay.cassette import RecordedModel, context_of, recorded_tools
from agent.replay.replay import run_turn
from agent.replay.searching import found_again
from agent.settings import Settings
from agent.tracing.differences import question_sections, sections
from agent.tracing.render.text import parsed_json
from agent.tracing.trace import Summary, Trace, read_data, span_from, span_json
from memory.process.spans import Span
from tools.registry import TOOLS, Tool, ToolResult

VERSION = 2
"""Of the form of the file."""


@dataclass(frozen=True, slots=True)
class Called:
    """A tool call."""

    name: str
    arguments: Mapping[str, Any]
    ok: bool
    result: Mapping[str, Any]
    """The result as the next request held it."""


@dataclass(frozen=True, slots=True)
class TurnAgain:
    """A replayed turn."""

    trace: Trace
    found: list[list[str]]
    """The facts that each search in memory finds today, where it holds those alone that the searches of the
    turn were given."""

    @property
    def reply(self) -> str:
        return str(read_data(self.trace.root, "reply", "message") or "")

    @property
    def error(self) -> str | None:
        return self.trace.root.error

    @property
    def tools(self) -> list[Called]:
        return [self._called(span) for span in self.trace.spans("tool")]

    @property
    def called(self) -> list[str]:
        """The names of the tools, in order."""
        return [span.name for span in self.trace.spans("tool")]

    @property
    def decided(self) -> list[tuple[str, str, str]]:
        """What was decided on each fact that a tool was given: its words, what was done, and why."""
        made = [one for span in self.trace.spans("decision") for one in span.data.get("decisions", ())]
        return [(one["content"], one["action"], one["reason"]) for one in made]

    @property
    def to_remember(self) -> list[str]:
        """The memories that the answer itself asked to store."""
        return [memory["content"] for memory in self._answer("memories")]

    @property
    def to_forget(self) -> list[str]:
        """What the answer asked to forget."""
        return self._answer("forget")

    @property
    def prompt(self) -> dict[str, str]:
        """The system message of the first call and the message with the question, by section."""
        call = next(self.trace.spans("call"), None)
        request = (call and read_data(call, "request")) or {}
        return sections(self.trace, request.get("system") or "") | question_sections(self.trace, request)

    @property
    def versions(self) -> dict[str, str]:
        """Hashes of what is the same in every turn: the persona, the rules, and what is said of the tools."""
        fixed = {name: text for name, text in self.prompt.items() if name in ("persona", "rules")}
        fixed["tools"] = json.dumps(self.trace.made_by["tools"], sort_keys=True)
        return {name: sha256(text.encode()).hexdigest()[:12] for name, text in fixed.items()}

    def _answer(self, part: str) -> list[Any]:
        return [one for span in self.trace.spans("answer") for one in read_data(span, "answer", part) or ()]

    def _called(self, span: Span) -> Called:
        id, result = span.data.get("call_id"), span.data.get("result")
        for call in self.trace.spans("call"):
            for item in read_data(call, "request", "input") or ():
                if item.get("type") == "function_call_output" and item.get("call_id") == id:
                    result = item.get("output")
        arguments, ok = _object(span.data.get("arguments")), span.data.get("ok") is True
        return Called(span.name, arguments, ok, _object(result))


def take_again(file: Path) -> TurnAgain:
    """Replay a turn with today's code and prompts and the recorded settings, without network or key. Raises
    ValueError for another file."""
    return asyncio.run(taken_again(read_trace_file(file.read_text(encoding="utf-8"))))


async def taken_again(trace: Trace) -> TurnAgain:
    """Replay a turn as `take_again` does, inside a running event loop."""
    recorded = dict(trace.made_by.get("settings") or {})
    no_server = dict.fromkeys(("openai_api_key", "openai_base_url", "provider", "upkeep_model"))
    settings = Settings.load(**{**recorded, **no_server})
    model = RecordedModel.of_turn(trace)
    enforced = any(read_data(call, "request", "response_format") for call in trace.spans("call"))
    form = "schema" if enforced else "none"
    chosen = replace(choose_model(settings), name=trace.summary.model, model=model, structured=form)
    tools = recorded_tools([*TOOLS, *_others(trace)], trace, settings.importance_floor)
    after = await run_turn(trace, context_of(trace), settings, chosen, tools)
    return TurnAgain(after, await found_again(trace))


def _others(trace: Trace) -> list[Tool]:
    """Return the tools of the program in which the turn was taken, as it was told of them then."""

    async def nobody(*_: Any) -> ToolResult:
        raise AssertionError("a recorded tool answers as recorded")

    ours = {tool.name for tool in TOOLS}
    offered = trace.made_by.get("tools") or {}
    return [
        Tool(name, told["description"], told["parameters"], nobody)
        for name, told in offered.items()
        if name not in ours
    ]


def trace_file(trace: Trace) -> str:
    """Return a trace as the text of a file."""
    whole = {"version": VERSION, "summary": asdict(replace(trace.summary, process=""))}
    whole |= {"made_by": trace.made_by, "root": span_json(trace.root)}
    return json.dumps(whole, indent=1, default=lambda value: value.isoformat()) + "\n"


def read_trace_file(text: str) -> Trace:
    """Parse the text of `trace_file`. Raises ValueError if it is none."""
    try:
        whole = json.loads(text)
        summary = TypeAdapter(Summary).validate_python(whole["summary"])
        return Trace(summary, span_from(whole["root"]), whole["made_by"], redacted=True)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"this is no file of a trace, or one of another Hachi ({error!r})") from error


def _object(text: Any) -> Mapping[str, Any]:
    value = parsed_json(text or "{}")
    if value is None:
        return {"text": text}
    return value if isinstance(value, dict) else {"value": value}
