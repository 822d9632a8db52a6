"""Searches again for what a turn was given: today's tool, in a memory that holds nothing else."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agent.companion import Companion
from agent.replay.cassette import context_of
from agent.replay.replay import tool_context
from agent.settings import Settings
from agent.tracing.render.text import parsed_json
from agent.tracing.trace import Trace
from memory.audience import Place
from tools.registry import TOOLS

SEARCH = "search_memories"
MOMENT = "%a %d %b %Y %H:%M"
"""As results tell times, by the person's clock."""


async def search_again(trace: Trace) -> list[list[str]]:
    """Return the facts that each search of a turn in memory finds now, in the order of the searches. The
    machine's settings, its memory and its embedder have no part in it."""
    searches = [span.data for span in trace.spans("tool") if span.name == SEARCH]
    facts = {fact["content"]: fact for search in searches for fact in _facts(search.get("result"))}
    if trace.summary.user is None or not facts:
        return [[] for _ in searches]
    built, tool = context_of(trace), next(tool for tool in TOOLS if tool.name == SEARCH)
    zone = built.prompt.known.zone
    about: dict[str, Any] = {"user": trace.summary.user, "place": Place.of_key(trace.summary.place)}
    with TemporaryDirectory() as folder:
        settings = Settings.model_construct(home=Path(folder), traces=False, importance_floor=0.0)
        async with Companion.open(settings, clock=lambda: built.prompt.now, upkeep=False) as pet:
            for content in sorted(facts):
                local = datetime.strptime(facts[content]["at"], MOMENT).replace(tzinfo=zone)
                said_at = local.astimezone(UTC)
                subjects = facts[content].get("subjects", ())
                await pet.remember(content, said_at=said_at, subjects=subjects, **about)
            turn = tool_context(trace, built, pet)
            results = [await tool.call(turn, search.get("arguments", "")) for search in searches]
    return [sorted(fact["content"] for fact in _facts(result.text)) for result in results]


def _facts(result: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the facts in a result of the tool."""
    value = parsed_json(result)
    for one in value.get("memories", ()) if isinstance(value, Mapping) else ():
        if isinstance(one, Mapping) and one.get("kind") == "memory":
            yield one
