"""Traces as they are recorded, made by hand."""

import json
import zlib
from datetime import timedelta
from typing import Any

from agent import Companion
from agent.tracing.trace import Summary, span_json
from agent.types import Usage
from memory.spans import Span

SEARCH = "search_memories"
HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31mred\u202eesrever\ud800"
    " \U000e0041'\"--></pre>"
)


MEMORIES = [
    {"id": "m1", "content": "Ana loves cats", "score": 0.91, "lanes": {"dense": 0.8, "words": 3.2}},
    {
        "id": "m2",
        "content": "Ana skis",
        "score": 0.2,
        "lanes": {"dense": 0.3},
        "left_out": "below the first 1",
    },
    {"id": "m3", "left_out": "gone, expired, or not to be read here"},
]


def a_turn(said: str = "what do I love?", reply: str = "You love cats.", *, failing: bool = False) -> Span:
    """A turn with two calls and a search between them."""
    tool = a_search(failing=failing)
    question = [{"role": "user", "content": said}]
    call = {"type": "function_call", "call_id": "c1", "name": SEARCH, "arguments": '{"query": "loves"}'}
    result = {"type": "function_call_output", "call_id": "c1", "output": tool.data["result"]}
    text = json.dumps({"message": reply, "memories": []})
    content = [{"type": "output_text", "text": text}]
    answer = [{"type": "message", "role": "assistant", "content": content}]
    known = {"long_term_facts": [{"content": "Ana lives in Lyon", "type": "fact"}]}
    scene = {"now": "2026-11-21T09:30:00+00:00", "known": known, "summary": "They spoke of cats."}
    memories = [{"content": "Ana loves cats", "type": "preference"}]
    answered = {"answer": {"message": reply, "memories": memories}, "well_formed": True}
    spans = [
        Span("scene", "", 0.0, 0.02, data={"scene": scene}),
        a_call(question, [call], 0.02),
        tool,
        a_call([*question, call, result], answer, 0.36),
        Span("answer", "", 0.65, 0.001, data=answered),
    ]
    data = {
        "incoming": {"text": said},
        "reply": {"message": reply, "calls": 2},
        "sections": [["persona", 14], ["person", 24]],
    }
    return Span("turn", "", 0.0, 0.7, data=data, spans=spans)


def a_search(*, failing: bool) -> Span:
    data: dict[str, Any] = {"call_id": "c1", "arguments": '{"query": "loves"}'}
    if failing:
        traceback = "Traceback (most recent call last):\nIndexUnavailable: down\n"
        failed = {"ok": False, "result": '{"error": "the index is down"}', "traceback": traceback}
        return Span("tool", SEARCH, 0.31, 0.03, data=data | failed)
    asked = {"query": "loves", "audience": ["user:ana"], "limit": 1}
    found = {"candidates": MEMORIES, "found": [["m1", 0.91]]}
    search = Span("search", "", 0.32, 0.01, data=asked | found)
    worked = {"ok": True, "result": '{"memories": ["Ana loves cats"]}'}
    return Span("tool", SEARCH, 0.31, 0.03, data=data | worked, spans=[search])


def a_call(input: Any, output: Any, at: float) -> Span:
    system = "You are Hachi.\n\nAna likes short answers."
    request = {"system": system, "input": input, "tools": [SEARCH], "settings": {"temperature": 0.2}}
    usage = {"input": 1200, "output": 40, "cached": 1000}
    data = {"request": request, "output": output, "usage": usage, "first": 0.1}
    return Span("call", "tiny", at, 0.28, data=data)


def remembering(content: str = "Ana loves cats") -> Span:
    """A background job; its trace names no user."""
    decision = {"content": content, "action": "replace", "id": "m9", "target_id": "m1"}
    decision |= {"reason": "says more than what was known"}
    decisions = [decision | {"close": [{"content": "Ana likes animals"}]}]
    inner = Span("decision", "", 0.001, 0.018, data={"decisions": decisions})
    return Span("store_memories", "", 0.0, 0.02, data={"tries": 1}, spans=[inner])


class Written:
    """Writes traces to the database of a companion, one second after another."""

    def __init__(self, pet: Companion) -> None:
        self.pet = pet
        self.number = 0

    async def __call__(self, root: Span | None = None, **about: Any) -> Summary:
        root = root or a_turn()
        self.number += 1
        made_by = {
            "versions": {"hachi": "0.1.0"},
            "prompts": {"persona": "abc"},
            "tools": {SEARCH: {"description": "Looks up.", "parameters": {"type": "object"}}},
        }
        summary = summed_up(root, f"trace_{self.number:032x}", **about)
        body = json.dumps({"made_by": "tests", "root": span_json(root)}, ensure_ascii=False)
        packed = zlib.compress(body.encode("utf-8", "surrogatepass"), 1)
        moment = self.pet.clock() - timedelta(minutes=1) + timedelta(seconds=self.number)
        summary = Summary(
            **{name: getattr(summary, name) for name in Summary.__slots__} | {"started_at": moment} | about
        )
        await self.pet.traces.write([(summary, packed)], moment, made_by=("tests", made_by))
        return summary


def summed_up(root: Span, id: str, **about: Any) -> Summary:
    incoming, reply = root.data.get("incoming", {}), root.data.get("reply", {})
    tools = [span for span in root.spans if span.kind == "tool"]
    failed = any(tool.data.get("ok") is False for tool in tools)
    values: dict[str, Any] = {
        "id": id,
        "kind": root.kind,
        "turn_id": None,
        "status": "tool_error" if failed else "ok",
        "started_at": None,
        "took": root.took,
        "user": "ana" if root.kind == "turn" else None,
        "place": "",
        "conversation": "dm:ana",
        "surface": "test",
        "model": "tiny",
        "said": incoming.get("text", "")[:200],
        "reply": reply.get("message", "")[:200],
        "error": root.error,
        "calls": sum(span.kind == "call" for span in root.spans),
        "tools": tuple(tool.name + "!" * (tool.data.get("ok") is False) for tool in tools),
        "usage": Usage(2400, 80, 2000),
    }
    return Summary(**values | about)
