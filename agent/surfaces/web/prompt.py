"""A model call: exactly what was asked, section by section and item by item, and what came back."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agent.surfaces.web.shapes import Block, Facts, Group, Passage, passage
from agent.surfaces.web.visible import tidied
from agent.tracing.compare import sections
from agent.tracing.trace import Trace
from memory.spans import Span

ITEMS = 80
"""Items of the input that are shown."""
ALWAYS_THE_SAME = frozenset({"persona", "rules"})
"""Sections that nobody said; closed until they are wanted."""


def call(trace: Trace, span: Span) -> Iterator[Block]:
    data = span.data
    request = data["request"] if isinstance(data.get("request"), Mapping) else {}
    yield _figures(span)
    yield from _output(data.get("output"))
    yield from _input(request.get("input"), _input_before(trace, span))
    yield _system(trace, request.get("system"))
    yield _tools(trace, request.get("tools"))
    yield passage("Settings", request.get("settings"), "/data/request/settings", open=False)


def _figures(span: Span) -> Facts:
    used, first = span.data.get("usage"), span.data.get("first")
    facts = []
    if isinstance(used, Mapping):
        names = {"input": "tokens in", "output": "tokens out", "cached": "of them cached"}
        facts += [(said, f"{used.get(name) or 0:,}") for name, said in names.items()]
    if isinstance(first, int | float):
        facts.append(("first piece after", f"{first:.2f} s"))
    return Facts(facts)


def _system(trace: Trace, system: Any) -> Group:
    if not isinstance(system, str):
        return Group("System message", ())
    found = sections(trace, system)
    parts = [
        passage(name, text, "/data/request/system", open=name not in ALWAYS_THE_SAME, note=_length(text))
        for name, text in found.items()
    ]
    return Group("System message", parts, _length(system))


def _length(text: str) -> str:
    return f"{len(text):,} characters"


def _input_before(trace: Trace, span: Span) -> Sequence[Any]:
    """Of the call before this one."""
    before: Sequence[Any] = ()
    for earlier in trace.spans("call"):
        if earlier is span:
            break
        request = earlier.data.get("request")
        given = request.get("input") if isinstance(request, Mapping) else None
        before = given if isinstance(given, list) else ()
    return before


def _input(given: Any, before: Sequence[Any]) -> Iterator[Group]:
    """What the model had seen in the call before, and what is new to it."""
    items = given if isinstance(given, list) else [] if given is None else [given]
    seen = len(before) if before and items[: len(before)] == before else 0
    names = _names(items)
    at = "/data/request/input"
    shown = [_item(item, f"{at}/{place}", names) for place, item in enumerate(items)]
    for title, parts, open in (
        ("Input: seen in the call before", shown[:seen], False),
        ("Input: new in this call" if seen else "Input", shown[seen:], True),
    ):
        kept = parts[-ITEMS:]
        yield Group(title, kept, _counted(len(parts)), open, more=len(parts) - len(kept), at=at)


def _counted(number: int) -> str:
    return "1 item" if number == 1 else f"{number:,} items"


def _output(output: Any) -> Iterator[Group]:
    items = output if isinstance(output, list) else []
    parts = [_item(item, f"/data/output/{place}", {}) for place, item in enumerate(items[:ITEMS])]
    yield Group("Output", parts, _counted(len(items)), more=len(items) - len(parts), at="/data/output")


def _names(items: Sequence[Any]) -> dict[Any, str]:
    """By the id of a call the tool that was called."""
    calls = [item for item in items if isinstance(item, Mapping) and item.get("type") == "function_call"]
    return {str(item.get("call_id")): str(item.get("name")) for item in calls}


def _item(item: Any, at: str, names: Mapping[Any, str]) -> Passage:
    if not isinstance(item, Mapping):
        return passage("user" if isinstance(item, str) else "item", item, at)
    kind = item.get("type")
    if kind == "function_call":
        text = tidied(str(item.get("arguments") or "{}"))
        return passage(f"calls {item.get('name')}", text, f"{at}/arguments", code=True)
    if kind == "function_call_output":
        name = names.get(str(item.get("call_id")), "a tool")
        output = item.get("output")
        shown = tidied(output) if isinstance(output, str) else output
        return passage(f"result of {name}", shown, f"{at}/output", code=True)
    content = item.get("content")
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], Mapping):
        [part] = content
        for name in ("text", "refusal"):
            if isinstance(part.get(name), str):
                return passage(str(item.get("role")), tidied(part[name]), f"{at}/content/0/{name}")
    if isinstance(content, str):
        return passage(str(item.get("role")), content, f"{at}/content")
    return passage(str(item.get("role") or kind or "item"), dict(item), at, code=True)


def _tools(trace: Trace, names: Any) -> Group:
    known = trace.made_by.get("tools")
    told = known if isinstance(known, Mapping) else {}
    listed = [str(name) for name in names or ()][:ITEMS]
    parts = [passage(name, told.get(name) or "(not recorded)", open=False, code=True) for name in listed]
    return Group("Tools", parts, ", ".join(listed) or "none", open=False)
