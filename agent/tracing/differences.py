"""Compares two traces: first versions, prompts, tools and settings, by name; then what happened, in order."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from agent.tracing.trace import TURN, Trace, last_attempt, mappings, read_data, was_stopped
from memory.process.spans import Span

DECIDED = ("action", "reason", "target_id")
"""The compared fields of a decision. Its memory may be new, with another id."""


@dataclass(frozen=True, slots=True)
class Difference:
    where: str
    """``assistant.md``, ``max_turns``, ``call 2, system message, person``, ``search_memories, result`` …"""
    what: str
    """``changed``, ``5 → 3``, ``differs``, ``is new``, ``is gone`` …"""
    before: str
    after: str
    cause: bool = False
    """Whether it is a change of prompts, tools, settings or versions, and not a different event."""


def differences(before: Trace, after: Trace) -> list[Difference]:
    """Return the differences; empty if only times and ids differ. Changed prompts, tools, settings and models
    come first, then different events: a request before its output, a result after its call. Versions are
    listed only if there are different events and no other change."""
    causes, events = list(_causes(before, after)), list(_events(before, after))
    if events and not causes:
        causes = list(_changed(before, after, "versions", "{}"))
    return [*(replace(one, cause=True) for one in causes), *events]


def _causes(before: Trace, after: Trace) -> Iterator[Difference]:
    yield from _changed(before, after, "prompts", "{}.md", of_text=True)
    tools, new = (trace.made_by.get("tools") or {} for trace in (before, after))
    for name in [name for name in tools if name in new]:
        for part, what in {"description": "description", "parameters": "arguments"}.items():
            old = tools[name].get(part)
            yield from _texts(f"the {what} of {name}", old, new[name].get(part), "changed")
    yield from _texts("the tools", ", ".join(tools), ", ".join(new) if tools else "")
    yield from _changed(before, after, "settings", "{}")
    models = before.summary.model, after.summary.model
    if models[0] != models[1]:
        yield Difference("the model", f"{models[0]} → {models[1]}", models[0], models[1])


def _changed(
    before: Trace, after: Trace, part: str, where: str, *, of_text: bool = False
) -> Iterator[Difference]:
    """Yield what differs in this part of `made_by`, for names that both traces have."""
    old, new = (trace.made_by.get(part) or {} for trace in (before, after))
    for name in [name for name in old if name in new and old[name] != new[name]]:
        was, now = (
            one if isinstance(one, str) else json.dumps(one) if one is not None else "unset"
            for one in (old[name], new[name])
        )
        yield Difference(where.format(name), "changed" if of_text else f"{was} → {now}", was, now)


def _events(before: Trace, after: Trace) -> Iterator[Difference]:
    yield from _data("what was said", before.root, after.root, "incoming", "text")
    calls, cut_off = 0, was_stopped(before.root)
    ours, theirs = steps(before), steps(after)
    for one, other in zip_longest(ours, theirs[: len(ours)] if cut_off else theirs):
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
            for made, makes in zip(
                _of_kind(one.spans, "decision"), _of_kind(other.spans, "decision"), strict=False
            ):
                yield from _decided(made, makes)
        elif one.kind == "decision":
            yield from _decided(one, other)
        elif one.kind == "exchange":
            for call, asks in zip(_of_kind(one.spans, "call"), _of_kind(other.spans, "call"), strict=False):
                yield from _call("consolidation", call, asks, before, after)
            yield from _data("consolidation, what was read in its answer", one, other, "findings")
        else:
            for part in ("message", "memories", "forget"):
                yield from _data(f"answer, {part}", one, other, "answer", part)
    if all("reply" in trace.root.data for trace in (before, after)):
        yield from _data("reply", before.root, after.root, "reply", "message")
    elif before.summary.kind == TURN and not cut_off and not (ours and ours[-1].kind == "answer"):
        # an error after the answer means that it was not stored
        yield from _texts("error", before.root.error, after.root.error)


def _decided(one: Span, other: Span) -> Iterator[Difference]:
    """Yield the facts on which the two traces decided differently. Ids of new memories are ignored."""
    made, makes = (mappings(span.data.get("decisions")) for span in (one, other))
    for old, new in zip_longest(made, makes, fillvalue=dict[str, Any]()):
        told = old.get("content") or new.get("content")
        was, now = ({name: end[name] for name in DECIDED if end.get(name)} for end in (old, new))
        if was != now:
            what = " → ".join(f"{end.get('action')} ({end.get('reason')})" for end in (was, now))
            yield Difference(f"what became of {told!r}", what, _as_text(was), _as_text(now))


def _of_kind(spans: Sequence[Span], *kinds: str) -> list[Span]:
    """Return the spans of these kinds; only decisions that were completed."""
    below = [one for one in spans if one.kind in kinds]
    return [one for one in below if one.kind != "decision" or "decisions" in one.data]


def _data(where: str, before: Span, after: Span, *path: str) -> Iterator[Difference]:
    yield from _texts(where, read_data(before, *path), read_data(after, *path))


def steps(trace: Trace) -> list[Span]:
    """Return the steps to compare: for a turn, the model calls, tool calls and answer of its last attempt;
    for a job, its consolidations and decisions. A failed call and its retries count as one."""
    if trace.summary.kind == TURN:
        found = _of_kind(last_attempt(trace), "call", "tool", "answer")
    else:
        found = _of_kind(trace.root.spans, "exchange", "decision")
    following = [span.kind for span in found[1:]] + [""]
    pairs = zip(found, following, strict=False)
    return [step for step, then in pairs if not (step.kind == then == "call" and step.error)]


def _step_name(step: Span | None) -> str:
    """Return what happens in the step, without the model's name, which may differ."""
    if step is None:
        return "nothing more"
    names = {"call": "the model is asked", "tool": f"{step.name} is called", "answer": "it answers"}
    return names.get(step.kind, step.kind)


def _call(where: str, one: Span, other: Span, before: Trace, after: Trace) -> Iterator[Difference]:
    ours, theirs = (span.data.get("request", {}) for span in (one, other))
    parts, others = prompt_parts(before, ours), prompt_parts(after, theirs)
    for name in dict.fromkeys((*parts, *others)):
        yield from _texts(f"{where}, {name}", parts.get(name), others.get(name))
    tools, others_tools = (request.get("tools", ()) for request in (ours, theirs))
    yield from _texts(f"{where}, tools", ", ".join(tools), ", ".join(others_tools))
    for part in ("settings", "response_format"):
        yield from _texts(f"{where}, {part}", ours.get(part), theirs.get(part))
    wrote, writes = ([_without_id(item) for item in span.data.get("output", ())] for span in (one, other))
    yield from _texts(f"{where}, what it wrote", wrote, writes)
    yield from _texts(f"{where}, error", one.error, other.error)


def prompt_parts(trace: Trace, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of a request by name: ``system message, rules``, ``message 3``, ``message 4,
    person``."""
    found: dict[str, Any] = _named("system message", sections(trace, request.get("system") or ""))
    given = request.get("input")
    for at, item in enumerate(given if isinstance(given, list) else [given]):
        found[f"message {at + 1}"] = _without_id(item)
        if at == trace.root.data.get("question_at") and (parts := question_sections(trace, request)):
            found |= _named(f"message {at + 1}", parts)
            del found[f"message {at + 1}"]
    return found


def _named(message: str, parts: Mapping[str, str]) -> dict[str, str]:
    return {f"{message}, {name}": text for name, text in parts.items()}


def sections(trace: Trace, system: str) -> dict[str, str]:
    """Return the system message by section; as ``whole`` if the trace does not record the sections."""
    return _divided(system, trace.root.data.get("sections", ()))


def question_sections(trace: Trace, request: Mapping[str, Any]) -> dict[str, str]:
    """Return the sections of the person's message; empty if the trace does not record the sections."""
    at, ends = (trace.root.data.get(name) for name in ("question_at", "question_sections"))
    items = request.get("input")
    if at is None or not isinstance(items, list) or at >= len(items):
        return {}
    content = items[at].get("content") or ""
    parts = content if isinstance(content, list) else [{"text": content}]
    return _divided("".join(str(part.get("text", "")) for part in parts), ends or ())


def _divided(text: str, ends: Sequence[tuple[str, int]]) -> dict[str, str]:
    found: dict[str, str] = {}
    at = 0
    for name, length in ends:
        found[name] = text[at : at + length]
        at += length + 2  # the blank line between two sections
    rest = text[at:]
    return found | ({"more" if found else "whole": rest} if rest else {})


def _texts(where: str, old: Any, new: Any, differs: str = "differs") -> Iterator[Difference]:
    before, after = _as_text(old), _as_text(new)
    if before != after:
        what = "is new" if not before else "is gone" if not after else differs
        yield Difference(where, what, before, after)


def _without_id(item: Any) -> Any:
    """Drop the ids that servers assign to items. `call_id` stays, because it links a result to its call."""
    if not isinstance(item, Mapping):
        return item
    return {name: value for name, value in item.items() if name != "id"}


def _as_text(value: Any) -> str:
    if not value or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
