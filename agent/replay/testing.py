"""Turns a trace into a test: a file with the trace, and a pytest file that replays it.

Context, model and tools return what was recorded; all other code is today's.
"""

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agent.companion import Companion
from agent.models.choice.choose import choose_model
from agent.replay.cassette import RecordedModel, context_of, described_tools, recorded_tools
from agent.replay.replay import answered_by, job_differences, run_turn, tool_context
from agent.settings import Settings, as_named_now
from agent.tracing.differences import Difference, differences
from agent.tracing.render.export import read_export, trace_json
from agent.tracing.render.text import json_text, parsed_json
from agent.tracing.trace import Trace, TraceWithJobs, read_data
from memory.audience import Place
from tools.registry import TOOLS, Tool

NO_SERVER = dict.fromkeys(("openai_api_key", "openai_base_url", "provider", "consolidate_model"))
FOR_SERVERS = (", settings", ", response_format")
"""The parts of a request that depend on the server."""

SEARCH = "search_memories"
MOMENT = "%a %d %b %Y %H:%M"
"""The format of times in tool results, in the person's zone."""
_TEST = """from pathlib import Path

from hachi.testing import take_again


def test_{name}_goes_as_recorded() -> None:
    assert take_again(Path(__file__).with_name("{name}.json")).differences == []
"""


@dataclass(frozen=True, slots=True)
class TurnAgain:
    """A replayed turn."""

    trace: Trace
    differences: list[Difference]
    """The differences, in order, including tool descriptions."""
    notes: list[Difference]
    """Prompts and versions that have changed: possible reasons, but no failures."""

    @property
    def reply(self) -> str:
        return str(read_data(self.trace.root, "reply", "message") or "")


def take_again(file: Path) -> TurnAgain:
    """Replay the turn in an exported file with today's code and prompts and the recorded settings, without
    network or key. Raises ValueError for any other file."""
    text = file.read_text(encoding="utf-8")
    whole, *_ = read_export(text)
    return asyncio.run(_replayed(whole, json.loads(text)[0].get("finds")))


async def _replayed(whole: TraceWithJobs, finds: list[list[str]] | None) -> TurnAgain:
    trace = whole.trace
    settings = Settings.load(**{**as_named_now(trace.made_by.get("settings") or {}), **NO_SERVER})
    every = [*TOOLS, *_program_tools(trace)]
    tools = recorded_tools(every, trace, settings.importance_floor, live=False)
    offline, built = choose_model(settings), context_of(trace)

    def recorded_model(*traces: Trace) -> Any:
        formed = any(
            read_data(call, "request", "response_format") for one in traces for call in one.spans("call")
        )
        name = next((one.summary.model for one in traces if one.summary.model), "")
        return replace(offline, name=name, structured="schema" if formed else "none")

    after = await run_turn(
        trace, built, settings, answered_by(recorded_model(trace), RecordedModel.of_turn(trace)), tools
    )
    changes = differences(trace, after)
    changes += [one async for one in job_differences(whole, settings, recorded_model(*whole.jobs), tools)]
    changes += _search_differences(finds, await search_again(trace)) if finds is not None else []
    changes = [one for one in dict.fromkeys(changes) if not one.where.endswith(FOR_SERVERS)]
    prompts, versions = (trace.made_by.get(part) or () for part in ("prompts", "versions"))
    noted = {*(f"{name}.md" for name in prompts), *versions}
    return TurnAgain(
        after,
        [one for one in changes if one.where not in noted],
        [one for one in changes if one.where in noted],
    )


def _search_differences(recorded: list[list[str]], repeated: list[list[str]]) -> Iterator[Difference]:
    for number, (before, after) in enumerate(zip(recorded, repeated, strict=True), 1):
        if before != after:
            where = f"{SEARCH} {number}, in a memory of what was found"
            yield Difference(where, "differs", "\n".join(before), "\n".join(after))


def _program_tools(trace: Trace) -> list[Tool]:
    """Return the calling program's tools as the trace describes them."""
    ours = {tool.name for tool in TOOLS}
    described = trace.made_by.get("tools") or {}
    return described_tools({name: one for name, one in described.items() if name not in ours})


async def make_test(whole: TraceWithJobs) -> dict[str, str]:
    """Return the test and its fixture, as texts by file name. Raises BadInput if the turn cannot be
    replayed."""
    trace, name = whole.trace, f"trace_{whole.trace.summary.short}"
    context_of(trace)  # raises
    anonymous = replace(whole, trace=replace(trace, summary=replace(trace.summary, process="")))
    file = [trace_json(anonymous) | {"finds": await search_again(trace)}]
    return {f"test_{name}.py": _TEST.format(name=name), f"{name}.json": json_text(file, indent=1) + "\n"}


async def search_again(trace: Trace) -> list[list[str]]:
    """Repeat each memory search of the turn in a new memory with the facts that it found then. Returns the
    facts found now, in order. The machine's settings, memory and embedder are not used."""
    searches = [span.data for span in trace.spans("tool") if span.name == SEARCH]
    facts = {fact["content"]: fact for search in searches for fact in _facts(search.get("result"))}
    if trace.summary.user is None or not facts:
        return [[] for _ in searches]
    built, tool = context_of(trace), next(tool for tool in TOOLS if tool.name == SEARCH)
    zone = built.prompt.known.zone
    about: dict[str, Any] = {"user": trace.summary.user, "place": Place.of_key(trace.summary.place)}
    with TemporaryDirectory() as folder:
        settings = Settings.model_construct(home=Path(folder), trace_content="off", importance_floor=0.0)
        async with Companion.open(settings, clock=lambda: built.prompt.now, periodic_jobs=False) as pet:
            for content in sorted(facts):
                local = datetime.strptime(facts[content]["at"], MOMENT).replace(tzinfo=zone)
                said_at = local.astimezone(UTC)
                subjects = facts[content].get("subjects", ())
                await pet.remember(content, said_at=said_at, subjects=subjects, **about)
            turn = tool_context(trace, built, pet)
            results = [await tool.call(turn, search.get("arguments", "")) for search in searches]
    return [sorted(fact["content"] for fact in _facts(result.text)) for result in results]


def _facts(result: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the facts in a tool's result."""
    value = parsed_json(result)
    for one in value.get("memories", ()) if isinstance(value, Mapping) else ():
        if isinstance(one, Mapping) and one.get("kind") == "memory":
            yield one
