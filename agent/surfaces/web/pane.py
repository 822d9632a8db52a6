"""One span as the pane beside the tree shows it: facts, passages of text, tables. What a trace lacks, because
no content is kept or an older version wrote it, is left out."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent.surfaces.web.prompt import call
from agent.surfaces.web.shapes import Block, Cell, Facts, Grid, passage
from agent.surfaces.web.visible import cut, step, tidied
from agent.surfaces.web.waterfall import status_of
from agent.tracing.trace import SHORT, Status, Trace
from memory.spans import Span

ROWS = 100
"""Rows of a table that are shown."""
CELL = 600
"""Characters of a text in a table."""


@dataclass(frozen=True, slots=True)
class Pane:
    span: Span
    address: str
    status: Status
    blocks: Sequence[Block] = field(default_factory=tuple)


def pane(trace: Trace, span: Span, address: str) -> Pane:
    blocks: list[Block] = []
    if span.error:
        blocks.append(passage("Error", span.error, "/error", tone="error"))
    known = _KINDS.get(span.kind)
    if known is None:
        blocks += _rest(span, ())
    else:
        show, names = known
        blocks += show(trace, span)
        blocks += _rest(span, names)
    return Pane(span, address, status_of(span, trace), [block for block in blocks if block])


def _rest(span: Span, told: Sequence[str]) -> Iterator[Block]:
    """What no more is known of than its name."""
    for name, value in span.data.items():
        if name not in told and value not in (None, "", [], {}):
            if isinstance(value, bool | int | float):
                yield Facts(((name, str(value)),))
            else:
                yield passage(name, value, f"/data{step(name)}")


def _turn(trace: Trace, span: Span) -> Iterator[Block]:
    summary, incoming, reply = trace.summary, _of(span, "incoming"), _of(span, "reply")
    yield passage("Said", incoming.get("text"), "/data/incoming/text")
    yield passage("Answered", reply.get("message"), "/data/reply/message")
    yield passage("Wishes of the program", incoming.get("instructions"), "/data/incoming/instructions")
    yield passage("Said earlier", incoming.get("earlier"), "/data/incoming/earlier", open=False)
    yield Facts(
        _told(
            {
                "author": incoming.get("author"),
                "sent": incoming.get("sent_at"),
                "conversation": summary.conversation,
                "surface": summary.surface,
                "message": summary.message_id,
                "reply": reply.get("message_id"),
                "process": summary.process,
            }
        )
    )
    versions = trace.made_by.get("versions")
    if isinstance(versions, Mapping):
        yield Facts(tuple((str(name), str(version)) for name, version in versions.items()), "Versions")
    yield passage("Prompts by hash", trace.made_by.get("prompts"), "", open=False)


def _scene(trace: Trace, span: Span) -> Iterator[Block]:
    scene, at = _of(span, "scene"), "/data/scene"
    looked_up = scene.get("known")
    known: Mapping[str, Any] = looked_up if isinstance(looked_up, Mapping) else {}
    yield Facts(_told({"now": scene.get("now")}))
    yield passage("Summary of the conversation", scene.get("summary"), f"{at}/summary")
    for name, value in known.items():
        if value not in (None, "", [], {}):
            yield _known(str(name), value, f"{at}/known{step(name)}")
    yield passage("From documents", scene.get("knowledge"), f"{at}/knowledge")
    yield passage("Messages shown, by id", scene.get("history"), f"{at}/history", open=False)


def _known(name: str, value: Any, at: str) -> Block:
    """Facts and tasks as tables, since they are what one looks for."""
    rows = value if isinstance(value, list) else []
    if rows and all(isinstance(row, Mapping) and ("content" in row or "description" in row) for row in rows):
        columns = [
            c for c in ("content", "description", "type", "importance", "status", "due") if c in rows[0]
        ]
        cells = [
            [cut(row.get(column), f"{at}/{n}/{column}", CELL) for column in columns]
            for n, row in enumerate(rows[:ROWS])
        ]
        return Grid(name.replace("_", " "), columns, cells, more=len(rows) - len(cells), at=at)
    if isinstance(value, Mapping):
        return Facts(_told(value), name.replace("_", " "))
    return passage(name.replace("_", " "), value, at)


def _tool(trace: Trace, span: Span) -> Iterator[Block]:
    data = span.data
    yield passage("Arguments", tidied(str(data.get("arguments") or "")), "/data/arguments", code=True)
    tone = "error" if data.get("ok") is False else ""
    yield passage("Result", tidied(str(data.get("result") or "")), "/data/result", code=True, tone=tone)
    yield passage("Traceback", data.get("traceback"), "/data/traceback", code=True, tone="error")
    yield Facts(_told({"call id": data.get("call_id")}))
    schema = trace.made_by.get("tools")
    if isinstance(schema, Mapping) and isinstance(schema.get(span.name), Mapping):
        told = schema[span.name]
        yield passage("As the model is told of it", told, "", open=False, code=True)


def _search(trace: Trace, span: Span) -> Iterator[Block]:
    data = span.data
    yield Facts(
        _told(
            {
                "query": data.get("query"),
                "may read": ", ".join(map(str, data.get("audience") or ())),
                "at most": data.get("limit"),
                "subjects": ", ".join(map(str, data.get("subjects") or ())),
            }
        )
    )
    candidates = [one for one in data.get("candidates") or () if isinstance(one, Mapping)]
    if candidates:
        yield _candidates(candidates)
    elif isinstance(data.get("found"), list):
        rows = [one if isinstance(one, list) else [one] for one in data["found"]]
        cells = [[cut(cell, most=CELL) for cell in row] for row in rows[:ROWS]]
        yield Grid("Found", ["id", "score"], cells, more=len(rows) - len(cells), at="/data/found")


def _candidates(candidates: Sequence[Mapping[str, Any]]) -> Grid:
    """Best first: what was found, then what was left out and why."""
    lanes = list(dict.fromkeys(str(lane) for one in candidates for lane in _lanes(one)))
    columns = ["#", "score", *(lane.replace("_", " ") for lane in lanes), "content", "left out because"]
    cells: list[list[Cell]] = []
    dim = []
    for number, one in enumerate(candidates[:ROWS]):
        about = " · ".join(
            str(one[name])[:most].replace("T", " " if name == "created_at" else "T")
            for name, most in _ABOUT.items()
            if one.get(name)
        )
        content = cut(one.get("content") or "(not shown here)", f"/data/candidates/{number}/content", CELL)
        cells.append(
            [
                cut(str(number + 1)),
                cut(_number(one.get("score"))),
                *(cut(_number(_lanes(one).get(lane))) for lane in lanes),
                (content, about),
                cut(one.get("left_out"), most=CELL),
            ]
        )
        dim.append(bool(one.get("left_out")))
    kept = sum(not one.get("left_out") for one in candidates)
    title = f"Candidates: {kept} found, {len(candidates) - kept} left out"
    more = len(candidates) - len(cells)
    numbers = frozenset(range(2 + len(lanes)))
    return Grid(title, columns, cells, dim, more=more, at="/data/candidates", numbers=numbers)


_ABOUT = {"kind": 40, "author": 40, "source": 40, "created_at": len("2026-11-22T09:30"), "id": SHORT}
"""What is told of a candidate in small print, and how many characters of each."""


def _lanes(candidate: Mapping[str, Any]) -> Mapping[str, Any]:
    lanes = candidate.get("lanes")
    return lanes if isinstance(lanes, Mapping) else {}


def _decision(trace: Trace, span: Span) -> Iterator[Block]:
    decisions = [one for one in span.data.get("decisions") or () if isinstance(one, Mapping)]
    columns = ["action", "content", "why", "about", "until"]
    cells: list[list[Any]] = []
    for number, one in enumerate(decisions[:ROWS]):
        at = f"/data/decisions/{number}"
        close = one.get("close") if isinstance(one.get("close"), list) else []
        beside = [str(item.get("content")) for item in close or () if isinstance(item, Mapping)]
        about = " · ".join(f"left as it is: {text}" for text in beside)
        cells.append(
            [
                cut(one.get("action")),
                (cut(one.get("content"), f"{at}/content", CELL), str(one.get("id") or "")),
                (cut(one.get("reason"), f"{at}/reason", CELL), about[:CELL]),
                cut(one.get("target_id")),
                cut(one.get("expires_at")),
            ]
        )
    if cells:
        yield Grid("Decisions", columns, cells, more=len(decisions) - len(cells), at="/data/decisions")


def _answer(trace: Trace, span: Span) -> Iterator[Block]:
    answer = _of(span, "answer")
    if span.data.get("well_formed") is False:
        yield passage(
            "Read leniently", "The model's answer was not the JSON that was asked for.", tone="error"
        )
    yield passage("Message", answer.get("message"), "/data/answer/message")
    memories = answer.get("memories")
    if isinstance(memories, list) and memories:
        columns = ["content", "subjects", "ttl", "type", "importance"]
        rows = [row for row in memories[:ROWS] if isinstance(row, Mapping)]
        cells = [[cut(row.get(column), most=CELL) for column in columns] for row in rows]
        yield Grid("To keep", columns, cells, more=len(memories) - len(cells), at="/data/answer/memories")


def _of(span: Span, name: str) -> Mapping[str, Any]:
    value = span.data.get(name)
    return value if isinstance(value, Mapping) else {}


def _told(facts: Mapping[Any, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (str(name).replace("_", " "), cut(value, most=CELL).text)
        for name, value in facts.items()
        if value not in (None, "", [], {})
    )


def _number(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, int | float) else ""


_KINDS: Mapping[str, tuple[Callable[[Trace, Span], Iterator[Block]], tuple[str, ...]]] = {
    "turn": (_turn, ("incoming", "reply", "sections")),
    "scene": (_scene, ("scene",)),
    "call": (call, ("request", "output", "usage", "first")),
    "tool": (_tool, ("arguments", "result", "traceback", "call_id", "ok")),
    "search": (_search, ("query", "audience", "limit", "subjects", "candidates", "found")),
    "documents": (_search, ("query", "audience", "limit", "candidates", "found")),
    "decision": (_decision, ("decisions",)),
    "answer": (_answer, ("answer", "well_formed")),
}
"""By kind what shows it, and the names in its data that this shows."""
