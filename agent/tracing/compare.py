"""Two traces side by side, and the first thing in which they differ."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from agent.tracing.trace import Trace
from memory.spans import Span


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not the same."""

    where: str
    """What it is in: ``call 2, system message, person``, ``search_memories``, ``reply`` …"""
    what: str
    """What is the matter with it, in a few words."""
    before: str
    after: str


def differences(before: Trace, after: Trace) -> list[Difference]:
    """In the order in which things happened; empty where the two are the same but for times and ids of
    traces. What was asked of the model comes before what it said, and a tool's result after its call."""
    return list(_differences(before, after))


def _differences(before: Trace, after: Trace) -> Iterator[Difference]:
    yield from _text("what was said", _said(before), _said(after))
    calls = 0
    for one, other in zip_longest(steps(before), steps(after)):
        calls += (one or other).kind == "call"
        if one is None or other is None or (one.kind, one.name) != (other.kind, other.name):
            if one and other and one.kind == other.kind == "call":
                pass  # another model, asked the same
            else:
                yield _out_of_step(one, other, calls)
                return
        assert one is not None
        assert other is not None
        if one.kind == "call":
            yield from _call(f"call {calls}", one, other, before, after)
        elif one.kind == "tool":
            yield from _tool(one, other)
        else:
            yield from _answer(one, other)
    yield from _text("reply", _reply(before), _reply(after))
    yield from _text("error", before.root.error or "", after.root.error or "")


def steps(trace: Trace) -> list[Span]:
    """What the model was asked, which tools ran, what was read of its answer. A call that failed and was made
    again counts once."""
    steps = [span for span in trace.root.spans if span.kind in ("call", "tool", "answer")]
    return [
        step
        for step, following in zip_longest(steps, steps[1:])
        if not (step.kind == "call" and step.error and following is not None and following.kind == "call")
    ]


def _out_of_step(one: Span | None, other: Span | None, calls: int) -> Difference:
    where = f"after call {calls}" if (one or other) and (one or other).kind != "call" else f"call {calls}"  # type: ignore[union-attr]
    return Difference(where, "something else happens", _named(one), _named(other))


def _named(step: Span | None) -> str:
    if step is None:
        return "nothing more"
    return {"call": "the model is asked", "tool": f"{step.name} is called"}.get(step.kind, "it answers")


def _call(where: str, one: Span, other: Span, before: Trace, after: Trace) -> Iterator[Difference]:
    ours, theirs = one.data.get("request", {}), other.data.get("request", {})
    yield from _system(where, ours.get("system"), theirs.get("system"), before, after)
    yield from _schemas(where, before, after, ours.get("tools", ()), theirs.get("tools", ()))
    yield from _input(where, ours.get("input"), theirs.get("input"))
    yield from _text(f"{where}, settings", _written(ours.get("settings")), _written(theirs.get("settings")))
    yield from _text(f"{where}, what it wrote", _output(one), _output(other))
    yield from _text(f"{where}, error", one.error or "", other.error or "")


def _system(
    where: str, ours: str | None, theirs: str | None, before: Trace, after: Trace
) -> Iterator[Difference]:
    """Section by section, where both tell theirs."""
    if ours == theirs:
        return
    parts, others = sections(before, ours or ""), sections(after, theirs or "")
    for name in dict.fromkeys((*parts, *others)):
        yield from _text(f"{where}, system message, {name}", parts.get(name, ""), others.get(name, ""))


def sections(trace: Trace, system: str) -> dict[str, str]:
    """The system message by the names of its sections; whole where nothing tells where they end."""
    found: dict[str, str] = {}
    at = 0
    for name, length in trace.root.data.get("sections", ()):
        found[name] = system[at : at + length]
        at += length + 2  # the blank line between two
    rest = system[at:]
    return found | ({"last call" if found else "whole": rest} if rest else {})


def _schemas(
    where: str, before: Trace, after: Trace, ours: Sequence[str], theirs: Sequence[str]
) -> Iterator[Difference]:
    yield from _text(f"{where}, tools", ", ".join(ours), ", ".join(theirs))
    known, others = before.made_by.get("tools", {}), after.made_by.get("tools", {})
    for name in ours:
        if name in theirs:
            yield from _text(
                f"{where}, tools, schema of {name}", _written(known.get(name)), _written(others.get(name))
            )


def _input(where: str, ours: Any, theirs: Any) -> Iterator[Difference]:
    items = [value if isinstance(value, list) else [value] for value in (ours, theirs)]
    for place, (item, other) in enumerate(zip_longest(*items), 1):
        yield from _text(f"{where}, message {place}", _message(item), _message(other))


def _tool(one: Span, other: Span) -> Iterator[Difference]:
    yield from _text(f"{one.name}, arguments", _shown(one, "arguments"), _shown(other, "arguments"))
    yield from _text(f"{one.name}, result", _shown(one, "result"), _shown(other, "result"))


def _answer(one: Span, other: Span) -> Iterator[Difference]:
    ours, theirs = one.data.get("answer") or {}, other.data.get("answer") or {}
    yield from _text("answer, message", ours.get("message", ""), theirs.get("message", ""))
    yield from _text("answer, memories", _written(ours.get("memories")), _written(theirs.get("memories")))


def _text(where: str, before: str, after: str) -> Iterator[Difference]:
    if before != after:
        what = "is new" if not before else "is gone" if not after else "differs"
        yield Difference(where, what, before, after)


def _said(trace: Trace) -> str:
    return str(trace.root.data.get("incoming", {}).get("text", ""))


def _reply(trace: Trace) -> str:
    return str(trace.root.data.get("reply", {}).get("message", ""))


def _shown(tool: Span, name: str) -> str:
    return str(tool.data.get(name, ""))


def _output(call: Span) -> str:
    """What the model wrote, without the ids that a server gives."""
    return _written([_without_ids(item) for item in call.data.get("output", ())])


def _message(item: Any) -> str:
    if isinstance(item, str) or item is None:
        return item or ""
    return _written(_without_ids(item))


def _without_ids(item: Any) -> Any:
    """A server's own ids say nothing; the id of a call ties a result to it."""
    return (
        {name: value for name, value in item.items() if name != "id"} if isinstance(item, Mapping) else item
    )


def _written(value: Any) -> str:
    return "" if not value else json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
