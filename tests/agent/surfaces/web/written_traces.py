"""Traces as they are recorded, made of those in traces.json."""

import json
import zlib
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from agent.tracing.redact import Redaction
from agent.tracing.serialization import Serializer, StoredTrace
from agent.tracing.trace import Summary, span_from, span_json
from memory.process.spans import Recording

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31mred\u202eesrever\ud800"
    " \U000e0041'\"--></pre>"
)
TRACES = Path(__file__).with_name("traces.json").read_text(encoding="utf-8")


def a_turn(said="what do I love?", reply="You love cats.", *, failing=False):
    """A turn with two calls and a search between them."""
    traces = json.loads(TRACES)
    root = span_from(traces["turn"])
    _, first, _, second, answer = root.spans
    root.data["incoming"]["text"] = said
    root.data["reply"]["message"] = answer.data["answer"]["message"] = reply
    for call in (first, second):
        call.data["request"]["input"][0]["content"] = said
    second.data["output"][0]["content"][0]["text"] = json.dumps({"message": reply, "memories": []})
    if failing:
        root.spans[2] = span_from(traces["failed_search"])
    return root


def remembering():
    """A background job."""
    return span_from(json.loads(TRACES)["remembering"])


class Written:
    """Writes traces to the database of a companion, one second after another."""

    def __init__(self, pet):
        self.pet = pet
        self.number = 0

    async def __call__(self, root=None, **about):
        root = root or a_turn()
        self.number += 1
        began = self.pet.clock() - timedelta(seconds=60 - self.number)
        known = Summary(
            id=f"trace_{self.number:032x}",
            kind=root.kind,
            started_at=began,
            user="ana" if root.kind == "turn" else None,
            said=root.data.get("incoming", {}).get("text", ""),
            reply=root.data.get("reply", {}).get("message", ""),
        )
        recorded = Recording(known.id, root)
        recorded.open = False
        stored = Serializer("full", Redaction(), {}, "test", "").serialize(recorded, known)
        summary = replace(stored.summary, **about)
        body = json.dumps({"made_by": "tests", "root": span_json(root)}, ensure_ascii=False)
        packed = zlib.compress(body.encode("utf-8", "surrogatepass"), 1)
        await self.pet.traces.write([StoredTrace(summary, packed)], began, made_by=("tests", {}))
        return summary
