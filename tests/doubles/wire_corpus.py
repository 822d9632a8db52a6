"""What servers of models answer and refuse. `tests/data/wire` has one file for each kind, with the thread
that reports it and at least two inputs.

    for case in wire_corpus.cases():
        case.script(server, "Green tea.")   # the odd answer first, then a plain one

An input has a `whole` answer (or its `message`) and a `stream` (or its `deltas`). If it has only one of them,
that one answers both kinds of request. In texts `$T` is the answer, `$1` and `$2` are its halves. `calls` are
the tools that the odd answer calls. `back` is what the next request must return with it. `refuses` is what
the server does not accept.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from scripted_server import Asked, Raw, ScriptedServer, answer

FOLDER = Path(__file__).parent.parent / "data" / "wire"
PLAIN = "Then."
"""The server's answer after the odd answer."""
Json = dict[str, Any]


@dataclass(frozen=True)
class Case:
    kind: str
    number: int
    api: str
    input: Json

    @property
    def name(self) -> str:
        return f"{self.kind} {self.number}"

    @property
    def settings(self) -> Json:
        """Return the settings that only this input has."""
        names = {"retries": "model_retries", "structured": "structured", "max_turns": "max_turns"}
        return {ours: self.input[name] for name, ours in names.items() if name in self.input}

    @property
    def only_text(self) -> bool:
        return not {"calls", "error", "cut", "text", "said_before"} & self.input.keys()

    @property
    def reply(self) -> str:
        """Return a part of the reply."""
        return PLAIN if self.input.get("calls") else str(self.input.get("text", "Green tea."))

    def script(self, server: ScriptedServer, text: str) -> list[Asked]:
        """Script the odd answer with this `text` for the next call, and plain answers for later ones. Returns
        the list of the requests that were not refused."""
        asked_for, refuses = list[Asked](), self.input.get("refuses")

        def step(asked: Asked) -> Any:
            asked_for.append(asked)
            again = len(asked_for) > 1 and "error" not in self.input
            return answer(PLAIN) if again else self.raw(bool(asked.json.get("stream")), text)

        def refusal(asked: Asked) -> Raw | None:
            if not refuses or not REFUSALS[refuses["when"].partition(" ")[0]](asked.json, refuses["when"]):
                return None
            return Raw(json.dumps(refuses["body"]).encode(), "application/json", refuses["status"])

        server.aside, server.refuses = step, refusal
        return asked_for

    def raw(self, streamed: bool, text: str) -> Raw:
        whole = self.input.get("whole") or (self.input.get("message") and self._completion())
        chunks = self.input.get("stream") or ("deltas" in self.input and [*self._chunks()])
        found = (chunks or whole) if streamed and self.input.get("status", 200) == 200 else (whole or chunks)
        status = self.input.get("status", 200)
        if isinstance(found, dict) and found.keys() == {"raw", "type"}:
            body = found["raw"]
            for sign, part in _parts(text).items():
                body = body.replace(sign, json.dumps(part)[1:-1])
            return Raw(body.encode(), found["type"], status)
        found = _filled(found, text)
        if isinstance(found, list) and found is not whole and status == 200:
            lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in found]
            return Raw("".join([*lines, "data: [DONE]\n\n"]).encode(), "text/event-stream")
        return Raw(json.dumps(found).encode(), "application/json", status)

    def _completion(self) -> Json:
        choice = {"index": 0, "message": self.input["message"], "finish_reason": self._finish}
        return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}

    def _chunks(self) -> Iterator[Json]:
        for delta, finish in [*((delta, None) for delta in self.input["deltas"]), ({}, self._finish)]:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            yield {"id": "c", "object": "chat.completion.chunk", "created": 1, "choices": [choice]}

    @property
    def _finish(self) -> str:
        return str(self.input.get("finish", "stop"))


@cache
def cases() -> tuple[Case, ...]:
    files = sorted(FOLDER.rglob("*.json"))
    read = [(file, json.loads(file.read_text())) for file in files]
    return tuple(
        Case(f"{file.parent.name}/{file.stem}", number, data["api"], input)
        for file, data in read
        for number, input in enumerate(data["inputs"], 1)
    )


async def forget_what_was_learned(pet: Any) -> None:
    """Reset what the models of a companion learned about their server."""
    for model in (await pet.components.models.answering(), await pet.components.models.consolidating()):
        wire = model.model.inner
        name = "max_tokens" if wire.api == "chat" else "max_output_tokens"
        wire.fit = type(wire.fit)(wire.fit.limit, name)
        model.breaker._answered()


def _parts(text: str) -> dict[str, str]:
    half = len(text) // 2
    return {"$T": text, "$1": text[:half], "$2": text[half:]}


def _filled(value: Any, text: str) -> Any:
    if isinstance(value, dict):
        return {name: _filled(part, text) for name, part in value.items()}
    if isinstance(value, list):
        return [_filled(part, text) for part in value]
    if isinstance(value, str):
        for sign, part in _parts(text).items():
            value = value.replace(sign, part)
    return value


def _with_calls(body: Json) -> list[Json]:
    return [message for message in body.get("messages", ()) if message.get("tool_calls")]


def _neighbours(body: Json, _: str) -> bool:
    roles = [one["role"] for one in body["messages"] if one["role"] not in ("system", "tool")]
    alternate = all(one != other for one, other in pairwise(roles))
    between_calls = any(one.get("tool_calls") for one in body["messages"])
    return roles[0] != "user" or not (alternate or between_calls)


def _empty(body: Json, _: str) -> bool:
    return any(message.get("content") == "" for message in body["messages"])


def _other_ids(body: Json, _: str) -> bool:
    ids = [call["id"] for message in _with_calls(body) for call in message["tool_calls"]]
    ids += [message["tool_call_id"] for message in body["messages"] if message["role"] == "tool"]
    return any(not (id.isalnum() and len(id) == 9) for id in ids)


def _calls(body: Json, when: str) -> bool:
    """Parse `calls without FIELD` and `calls with FIELD`. FIELD is in the message or in each call."""
    _, how, field = when.split()
    has = [
        field in message or all(field in call for call in message["tool_calls"])
        for message in _with_calls(body)
    ]
    return any(has) if how == "with" else not all(has)


def _after_a_result(body: Json, _: str) -> bool:
    return ("tool", "user") in pairwise(message["role"] for message in body["messages"])


def _reasoning(body: Json, _: str) -> bool:
    items = [item for item in body["input"] if item.get("type") == "reasoning"]
    return any(not item.get("encrypted_content") for item in items)


REFUSALS: Mapping[str, Callable[[Json, str], bool]] = {
    "neighbours": _neighbours,
    "null": lambda body, _: any(one.get("content") is None for one in body["messages"]),
    "empty": _empty,
    "other": _other_ids,
    "system": lambda body, _: any(one["role"] == "system" for one in body["messages"][1:]),
    "has": lambda body, when: when.split()[1] in body,
    "calls": _calls,
    "after": _after_a_result,
    "reasoning": _reasoning,
    "ids": lambda body, _: any("id" in item for item in body["input"] if "call_id" in item),
}
