"""Compares two traces and lists their differences in the order of events."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from agent.tracing.trace import Trace, read_data
from memory.process.spans import Span


@dataclass(frozen=True, slots=True)
class Difference:
    where: str
    """``call 2, system message, person``, ``search_memories, result``, ``reply`` …"""
    what: str
    """``differs``, ``is new``, ``is gone`` …"""
    before: str
    after: str


def differences(before: Trace, after: Trace) -> list[Difference]:
    """Return the differences; empty if only times and trace ids differ. A request comes before its output,
    and a tool's result after its call."""
    return list(_differences(before, after))


def _differences(before: Trace, after: Trace) -> Iterator[Difference]:
    yield from _data("what was said", before.root, after.root, "incoming", "text")
    calls = 0
    for one, other in zip_longest(steps(before), steps(after)):
        is_call = (one or other).kind == "call"
        calls += is_call
        where = f"call {calls}" if is_call else f"after call {calls}"
        if one is None or other is None or _step_name(one) != _step_name(other):
            yield Difference(where, "something else happens", _step_name(one), _step_name(other))
            return
        if is_call:
            yield from _call(where, one, other, before, after)
        elif one.kind == "tool":
            for part in ("arguments", "result"):
                yield from _data(f"{one.name}, {part}", one, other, part)
        else:
            for part in ("message", "memories"):
                yield from _data(f"answer, {part}", one, other, "answer", part)
    yield from _data("reply", before.root, after.root, "reply", "message")
    yield from _texts("error", before.root.error, after.root.error)


def _data(where: str, before: Span, after: Span, *path: str) -> Iterator[Difference]:
    yield from _texts(where, read_data(before, *path), read_data(after, *path))


def steps(trace: Trace) -> list[Span]:
    """Return the model calls, tool calls and the answer. A failed call and its retries count once."""
    found = [span for span in trace.root.spans if span.kind in ("call", "tool", "answer")]
    kinds = [span.kind for span in found[1:]] + [""]
    pairs = zip(found, kinds, strict=False)
    return [step for step, following in pairs if not (step.kind == following == "call" and step.error)]


def _step_name(step: Span | None) -> str:
    """Return what happens in the step. It omits the model, which may differ between the traces."""
    if step is None:
        return "nothing more"
    return {"call": "the model is asked", "tool": f"{step.name} is called"}.get(step.kind, "it answers")


def _call(where: str, one: Span, other: Span, before: Trace, after: Trace) -> Iterator[Difference]:
    ours, theirs = (span.data.get("request", {}) for span in (one, other))
    if ours.get("system") != theirs.get("system"):
        parts, others = (
            sections(before, ours.get("system") or ""),
            sections(after, theirs.get("system") or ""),
        )
        for name in dict.fromkeys((*parts, *others)):
            yield from _texts(f"{where}, system message, {name}", parts.get(name), others.get(name))
    tools, others_tools = (request.get("tools", ()) for request in (ours, theirs))
    yield from _texts(f"{where}, tools", ", ".join(tools), ", ".join(others_tools))
    for name in (name for name in tools if name in others_tools):
        schemas = (trace.made_by.get("tools", {}).get(name) for trace in (before, after))
        yield from _texts(f"{where}, tools, schema of {name}", *schemas)
    for place, (item, new) in enumerate(zip_longest(_items(ours), _items(theirs)), 1):
        yield from _texts(f"{where}, message {place}", _without_id(item), _without_id(new))
    yield from _texts(f"{where}, settings", ours.get("settings"), theirs.get("settings"))
    outputs = ([_without_id(item) for item in span.data.get("output", ())] for span in (one, other))
    yield from _texts(f"{where}, what it wrote", *outputs)
    yield from _texts(f"{where}, error", one.error, other.error)


def _items(request: Mapping[str, Any]) -> list[Any]:
    given = request.get("input")
    return given if isinstance(given, list) else [given]


def sections(trace: Trace, system: str) -> dict[str, str]:
    """Return the system message by section; under ``whole`` if the trace does not say where sections end."""
    found: dict[str, str] = {}
    at = 0
    for name, length in trace.root.data.get("sections", ()):
        found[name] = system[at : at + length]
        at += length + 2  # the blank line between two sections
    rest = system[at:]
    return found | ({"last call" if found else "whole": rest} if rest else {})


def _texts(where: str, old: Any, new: Any) -> Iterator[Difference]:
    before, after = _as_text(old), _as_text(new)
    if before != after:
        what = "is new" if not before else "is gone" if not after else "differs"
        yield Difference(where, what, before, after)


def _without_id(item: Any) -> Any:
    """Drop the ids of items, which the server assigns. Keep `call_id`, which ties a result to its call."""
    if not isinstance(item, Mapping):
        return item
    return {name: value for name, value in item.items() if name != "id"}


def _as_text(value: Any) -> str:
    if not value or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
