"""Two traces side by side, and what differs, in the order in which it happened."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from agent.tracing.trace import Trace, read_data
from memory.spans import Span


@dataclass(frozen=True, slots=True)
class Difference:
    where: str
    """``call 2, system message, person``, ``search_memories, result``, ``reply`` …"""
    what: str
    """``differs``, ``is new``, ``is gone`` …"""
    before: str
    after: str


def differences(before: Trace, after: Trace) -> list[Difference]:
    """Empty if the two are the same but for times and trace ids. A request comes before its output, and a
    tool's result after its call."""
    return list(_differences(before, after))


def _differences(before: Trace, after: Trace) -> Iterator[Difference]:
    yield from _texts("what was said", *_both(before, after, "incoming", "text"))
    calls = 0
    for one, other in zip_longest(steps(before), steps(after)):
        calls += (one or other).kind == "call"
        if one is None or other is None or _step_key(one) != _step_key(other):
            is_call = (one or other).kind == "call"
            where = f"call {calls}" if is_call else f"after call {calls}"
            yield Difference(where, "something else happens", _step_name(one), _step_name(other))
            return
        if one.kind == "call":
            yield from _call(f"call {calls}", one, other, before, after)
        elif one.kind == "tool":
            for part in ("arguments", "result"):
                yield from _texts(f"{one.name}, {part}", *(str(s.data.get(part, "")) for s in (one, other)))
        else:
            messages = (read_data(span, "answer", "message") or "" for span in (one, other))
            yield from _texts("answer, message", *messages)
            memories = (_as_text(read_data(span, "answer", "memories")) for span in (one, other))
            yield from _texts("answer, memories", *memories)
    yield from _texts("reply", *_both(before, after, "reply", "message"))
    yield from _texts("error", before.root.error or "", after.root.error or "")


def _both(before: Trace, after: Trace, *path: str) -> Iterator[str]:
    return (str(read_data(trace.root, *path) or "") for trace in (before, after))


def steps(trace: Trace) -> list[Span]:
    """Model calls, tool calls and the answer. A call that failed and was retried counts once."""
    found = [span for span in trace.root.spans if span.kind in ("call", "tool", "answer")]
    return [
        step
        for step, following in zip_longest(found, found[1:])
        if not (step.kind == "call" and step.error and following is not None and following.kind == "call")
    ]


def _step_key(step: Span) -> tuple[str, str]:
    """What must be equal for two steps to be compared. Another model may have been asked the same."""
    return step.kind, "" if step.kind == "call" else step.name


def _step_name(step: Span | None) -> str:
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
            yield from _texts(f"{where}, system message, {name}", parts.get(name, ""), others.get(name, ""))
    yield from _tools(where, before, after, ours.get("tools", ()), theirs.get("tools", ()))
    items = [
        value if isinstance(value, list) else [value] for value in (ours.get("input"), theirs.get("input"))
    ]
    for place, (item, new) in enumerate(zip_longest(*items), 1):
        yield from _texts(f"{where}, message {place}", _message(item), _message(new))
    yield from _texts(f"{where}, settings", _as_text(ours.get("settings")), _as_text(theirs.get("settings")))
    yield from _texts(f"{where}, what it wrote", _output(one), _output(other))
    yield from _texts(f"{where}, error", one.error or "", other.error or "")


def sections(trace: Trace, system: str) -> dict[str, str]:
    """The system message by section; under ``whole`` if the trace does not say where sections end."""
    found: dict[str, str] = {}
    at = 0
    for name, length in trace.root.data.get("sections", ()):
        found[name] = system[at : at + length]
        at += length + 2  # the blank line between two
    rest = system[at:]
    return found | ({"last call" if found else "whole": rest} if rest else {})


def _tools(
    where: str, before: Trace, after: Trace, ours: Sequence[str], theirs: Sequence[str]
) -> Iterator[Difference]:
    yield from _texts(f"{where}, tools", ", ".join(ours), ", ".join(theirs))
    schemas, others = before.made_by.get("tools", {}), after.made_by.get("tools", {})
    for name in ours:
        if name in theirs:
            schema, other = _as_text(schemas.get(name)), _as_text(others.get(name))
            yield from _texts(f"{where}, tools, schema of {name}", schema, other)


def _texts(where: str, before: str, after: str) -> Iterator[Difference]:
    if before != after:
        what = "is new" if not before else "is gone" if not after else "differs"
        yield Difference(where, what, before, after)


def _output(call: Span) -> str:
    return _as_text([_without_id(item) for item in call.data.get("output", ())])


def _message(item: Any) -> str:
    return item if isinstance(item, str) else _as_text(_without_id(item))


def _without_id(item: Any) -> Any:
    """Ids of items are the server's and mean nothing; `call_id`, which ties a result to its call, stays."""
    if not isinstance(item, Mapping):
        return item
    return {name: value for name, value in item.items() if name != "id"}


def _as_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str) if value else ""
