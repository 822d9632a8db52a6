"""A language model's server on 127.0.0.1 that answers by a script.

It implements the two APIs of OpenAI, `/v1/responses` and `/v1/chat/completions`, whole and as a stream, and
records its requests. Calls that consolidate a conversation may come at any time, so they are answered and
recorded separately: with "nothing new", unless they have a script of their own.

    async with ScriptedServer.running() as server:
        server.script(Call("search_memories", {"query": "tea"}), answer("You like tea."))
        ...                                     # with server.url as the base URL
        assert server.asked[0].json["model"] == "tiny"
        assert "Ana: tea!" in server.consolidations[0].text

`ScriptedServer.on_a_thread()` is for tests of code that runs its own event loop.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Container, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from anyio.from_thread import start_blocking_portal

CONSOLIDATES = "You keep the notes of a companion"
"""The start of a consolidation's prompt."""
QUESTION = "## Their message\n"
"""The heading between the context and the question."""
_DATE = re.compile(r"^([^:\n]*: )?\[\w{3} \d\d \w{3} \d{4} \d\d:\d\d UTC[^]]*\] ")
SPEAKERS = ("user", "assistant")
PIECE = 7
"""Characters of a streamed piece of text."""
STEPS = 10
"""Steps of the event loop that suffice to serve an accepted connection, and to close an ended one."""


def divided(message: str) -> tuple[str, str]:
    """Return the context in the question's message, and the question as it was written, in a shared place
    with its speaker. For any other message return an empty context and its text."""
    before, heading, question = message.partition(QUESTION)
    if not heading:
        return "", message
    if "where others read along" not in before:
        question = question.partition(": ")[2].replace("\n  ", "\n")
    return before, question


@dataclass(frozen=True)
class Asked:
    """One request."""

    path: str
    headers: dict[str, str]
    json: dict[str, Any]

    @property
    def tools(self) -> dict[str, dict[str, Any]]:
        """Return the name of each tool → its description for the model."""
        tools = (tool.get("function", tool) for tool in self.json.get("tools") or ())
        return {tool["name"]: tool for tool in tools}

    @property
    def system(self) -> str:
        """Return the system's message."""
        if "instructions" in self.json:
            return str(self.json["instructions"])
        return "\n".join(m["content"] for m in self.json.get("messages", ()) if m["role"] == "system")

    @property
    def context(self) -> str:
        """Return the system's message and the context."""
        return "\n\n".join([self.system, *(divided(text)[0] for _, text in self._messages)])

    @property
    def conversation(self) -> list[tuple[str, str]]:
        """Return (role, text) of the messages, without the system's message, calls, results, the context and
        the dates of messages."""
        return [(role, _DATE.sub(r"\1", divided(text)[1])) for role, text in self._messages]

    @property
    def _messages(self) -> list[tuple[str, str]]:
        items = self.json.get("input") or self.json.get("messages") or ()
        texts = [(item["role"], item.get("content")) for item in items if item.get("role") in SPEAKERS]
        return [(role, text) for role, text in texts if text and isinstance(text, str)]

    @property
    def text(self) -> str:
        """Return all text of the request."""
        return "\n".join([self.system, *(text for _, text in self._messages)])

    @property
    def consolidates(self) -> bool:
        """Return whether the call consolidates a conversation, after a reply."""
        return CONSOLIDATES in self.text

    @property
    def results(self) -> list[str]:
        """Return the results of the tools, in order."""
        if "input" in self.json:
            return [i["output"] for i in self.json["input"] if i.get("type") == "function_call_output"]
        return [m["content"] for m in self.json["messages"] if m["role"] == "tool"]

    @property
    def call_ids(self) -> list[str]:
        """Return the ids of the tool calls so far, in order."""
        if "input" in self.json:
            return [i["call_id"] for i in self.json["input"] if i.get("type") == "function_call"]
        calls = (m.get("tool_calls") or () for m in self.json["messages"])
        return [call["id"] for made in calls for call in made]

    @property
    def fields(self) -> list[str]:
        """Return the names of the request's fields, and of those inside `stream_options` and
        `response_format`."""
        inner = [(name, self.json.get(name) or {}) for name in ("stream_options", "response_format")]
        return [*self.json, *(f"{name}.{key}" for name, value in inner for key in value)]

    @property
    def form(self) -> dict[str, Any] | None:
        """Return the requested format: `json_schema`, `json_object` or none."""
        return self.json.get("response_format") or (self.json.get("text") or {}).get("format")


@dataclass(frozen=True)
class Call:
    """A tool call. If `arguments` is a string, it is sent unchanged."""

    name: str
    arguments: dict[str, Any] | str = field(default_factory=dict)
    id: str | None = None
    """None means a new id."""

    @property
    def written(self) -> str:
        """Return the arguments as the model writes them."""
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@dataclass(frozen=True)
class Say:
    """Text, and perhaps tool calls with it."""

    text: str
    calls: tuple[Call, ...] = ()
    pause: float = 0.0
    """Seconds before each piece of the text. An answer that is not streamed comes after the sum."""
    finish: str | None = None
    """Why the answer is not whole: `length` or `content_filter`. None if it is."""
    stays: bool = False
    """Whether the stream stays open, without an end, after the text."""


def answer(message: str, *memories: dict[str, Any]) -> Say:
    """Return an answer in the requested format."""
    return Say(json.dumps({"message": message, "memories": [fact(**memory) for memory in memories]}))


def fact(content: str, **other: Any) -> dict[str, Any]:
    """Return an item of memories[], with every key."""
    usual = {"subjects": ["ana"], "ttl": None, "type": "fact", "importance": 0.6}
    return {"content": content, **usual, **other}


@dataclass(frozen=True)
class Refuse:
    """A refusal of the model, in the form of the API."""

    text: str


@dataclass(frozen=True)
class Fail:
    """An HTTP fault."""

    status: int
    message: str = "something went wrong"
    retry_after: str | None = "0"


@dataclass(frozen=True)
class Raw:
    """Any body, with status 200."""

    body: bytes
    type: str = "text/html"
    status: int = 200


@dataclass(frozen=True)
class Hang:
    """No answer, after `pieces` pieces of `text`, until the client disconnects."""

    text: str = ""
    pieces: int = 0


@dataclass(frozen=True)
class Drop:
    """A broken connection; in a stream after some pieces of `text`."""

    text: str = ""
    pieces: int = 0


Step = Say | Call | Refuse | Fail | Raw | Hang | Drop | list[Call]


class ScriptedServer:
    """Answers each call with the next step of its script, and records the requests."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[Asked] = []
        """Calls for a reply, in order."""
        self.consolidations: list[Asked] = []
        """Calls that consolidated a conversation, in order."""
        self.left = asyncio.Event()
        """Set once a client has disconnected during a `Hang`."""
        self.then: Step = Fail(418, "the script is at its end")
        """The answer to calls beyond the script."""
        self.aside: Callable[[Asked], Step | None] = lambda asked: None
        """Answers calls outside of the script, at any time; None leaves the call to the script."""
        self.asides: list[Asked] = []
        """Calls that `aside` answered, in order."""
        self.takes: Container[str] | None = None
        """The fields that a request may have, nested ones with a dot. Any other field gets 422. None allows
        all."""
        self.refuses: Callable[[Asked], Step | None] = lambda asked: None
        """Returns the answer to a request that the server refuses, whatever the script says; None for
        others."""
        self.tells: dict[str, Any] = {}
        """What the server says about itself, by path: `/v1/models`, `/props`."""
        self._steps: list[Step] = []
        self._findings: list[Step] = []
        self._numbers = count(1)
        self._open: set[asyncio.StreamWriter] = set()

    @classmethod
    @asynccontextmanager
    async def running(cls) -> AsyncIterator["ScriptedServer"]:
        """Run a server on a free port of 127.0.0.1 during the block."""
        here = cls()
        listening = await asyncio.start_server(here._serve, "127.0.0.1", 0)
        here.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"
        try:
            yield here
        finally:
            await _some_steps()  # serve the last connection, so that it ends
            listening.close()
            for writer in here._open:
                writer.transport.abort()
            await _some_steps()

    @classmethod
    @contextmanager
    def on_a_thread(cls) -> Iterator["ScriptedServer"]:
        """Run the server on a thread of its own, for a test without an event loop."""
        with (
            start_blocking_portal() as portal,
            portal.wrap_async_context_manager(cls.running()) as running,
        ):
            yield running

    def script(self, *steps: Step) -> None:
        """Set the answers to the next calls, one each. Calls beyond them get `then`."""
        self._steps += steps

    def clear(self) -> None:
        """Clear the rest of the script and the recorded requests."""
        for kept in (self._steps, self.asked, self.asides):
            kept.clear()

    def script_consolidations(self, *steps: Step) -> None:
        """Set the answers to the next calls that consolidate, one each. Later calls get "nothing new"."""
        self._findings += steps

    def clear_findings(self) -> None:
        """Clear the script of calls that consolidate."""
        self._findings.clear()

    def _step(self, asked: Asked) -> Step:
        if asked.path.endswith("/models") or asked.path in self.tells:
            return self.then
        if refused := self.refuses(asked):
            return refused
        if asked.consolidates:
            self.consolidations.append(asked)
            return self._findings.pop(0) if self._findings else Say('{"summary": ""}')
        if step := self.aside(asked):
            self.asides.append(asked)
            return step
        self.asked.append(asked)
        return self._steps.pop(0) if self._steps else self.then

    @property
    def unused(self) -> int:
        """Return how many steps of the script were not used."""
        return len(self._steps)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while asked := await _read(reader):
                if not await self._answer(self._step(asked), asked, reader, writer):
                    break
        self._open.discard(writer)
        writer.close()

    async def _answer(
        self, step: Step, asked: Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Send the answer. Returns whether the connection can be used again."""
        if asked.path.endswith("/models") and not isinstance(step, Fail):
            step = Raw(json.dumps(_MODELS).encode(), "application/json")
        if asked.path in self.tells:
            step = Raw(json.dumps(self.tells[asked.path]).encode(), "application/json")
        if self.takes is not None and (extra := [name for name in asked.fields if name not in self.takes]):
            step = Fail(422, f"extra_forbidden: {', '.join(extra)}")
        if isinstance(step, Fail):
            body = json.dumps({"error": {"message": step.message, "type": "fault", "code": None}}).encode()
            extra = {} if step.retry_after is None else {"retry-after": step.retry_after}
            await _write(writer, _whole(body, "application/json", step.status, extra))
            return True
        if isinstance(step, Raw):
            await _write(writer, _whole(step.body, step.type, step.status, {"retry-after": "0"}))
            return True
        if isinstance(step, Hang | Drop):
            return await self._leave_unfinished(step, asked, reader, writer)
        said = _said(step)
        pause = said.pause if isinstance(said, Say) else 0.0
        if not asked.json.get("stream"):
            await asyncio.sleep(pause * len(range(0, len(getattr(said, "text", "")), PIECE)))
            body = json.dumps(self._body(said, asked)).encode()
            await _write(writer, _whole(body, "application/json"))
            return True
        await _write(writer, _STREAM)
        shown = False
        for event in self._events(said, asked):
            await asyncio.sleep(pause if pause and _is_piece(event) else 0)
            shown = shown or _is_piece(event)
            if isinstance(said, Say) and said.stays and shown and not _is_piece(event):
                return await self._leave_unfinished(Hang(), asked, reader, writer)
            await _write(writer, _chunk(event))
        await _write(writer, _chunk(b""))
        return True

    async def _leave_unfinished(
        self, step: Hang | Drop, asked: Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        if step.pieces:
            await _write(writer, _STREAM)
            begun = 0
            for event in self._events(Say(step.text), asked):
                begun += _is_piece(event)
                if begun > step.pieces or (begun and not _is_piece(event)):  # without the stream's end
                    break
                await _write(writer, _chunk(event))
        if isinstance(step, Hang):
            while await reader.read(1024):
                pass
            self.left.set()
        writer.transport.abort()
        return False

    def _body(self, said: Say | Refuse, asked: Asked) -> dict[str, Any]:
        if asked.path.endswith("/responses"):
            return self._response(self._items(said), asked, _finish(said))
        message: dict[str, Any] = {"role": "assistant", "content": None}
        if isinstance(said, Refuse):
            message["refusal"] = said.text
        else:
            message["content"] = said.text or None
            if said.calls:
                message["tool_calls"] = [self._chat_call(call) for call in said.calls]
        choice = {"index": 0, "message": message, "finish_reason": _finish(said)}
        return self._completion(asked, "chat.completion", [choice]) | {"usage": _CHAT_USAGE}

    def _events(self, said: Say | Refuse, asked: Asked) -> Iterator[bytes]:
        if asked.path.endswith("/responses"):
            for number, event in enumerate(self._response_events(said, asked)):
                yield _sse(event | {"sequence_number": number})
            return
        for delta in self._chat_deltas(said):
            yield _sse(self._chunk(asked, delta, None))
        yield _sse(self._chunk(asked, {}, _finish(said)))
        yield _sse(self._completion(asked, "chat.completion.chunk", []) | {"usage": _CHAT_USAGE})
        yield b"data: [DONE]\n\n"

    # Responses API.

    def _items(self, said: Say | Refuse) -> list[dict[str, Any]]:
        content: list[dict[str, Any]] = []
        if isinstance(said, Refuse):
            content = [{"type": "refusal", "refusal": said.text}]
        elif said.text:
            content = [{"type": "output_text", "text": said.text, "annotations": [], "logprobs": []}]
        items: list[dict[str, Any]] = []
        if content:
            id = f"msg_{next(self._numbers)}"
            items.append(
                {"type": "message", "id": id, "role": "assistant", "status": "completed", "content": content}
            )
        for call in _calls(said):
            number = next(self._numbers)
            items.append(
                {
                    "type": "function_call",
                    "id": f"fc_{number}",
                    "call_id": f"call_{number}" if call.id is None else call.id,
                    "name": call.name,
                    "arguments": call.written,
                    "status": "completed",
                }
            )
        return items

    def _response(self, items: list[dict[str, Any]], asked: Asked, finish: str = "stop") -> dict[str, Any]:
        cut = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(finish)
        ended = {"status": "incomplete", "incomplete_details": {"reason": cut}} if cut else {}
        return {
            "id": f"resp_{next(self._numbers)}",
            "object": "response",
            "created_at": 0,
            "status": "completed",
            "model": asked.json["model"],
            "output": items,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": {
                "input_tokens": 10,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": 5,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": 15,
            },
            **ended,
        }

    def _response_events(self, said: Say | Refuse, asked: Asked) -> Iterator[dict[str, Any]]:
        items = self._items(said)
        yield {"type": "response.created", "response": self._response([], asked)}
        for at, item in enumerate(items):
            empty = item | ({"content": []} if item["type"] == "message" else {"arguments": ""})
            yield {"type": "response.output_item.added", "output_index": at, "item": empty}
            where = {"item_id": item["id"], "output_index": at}
            if item["type"] == "function_call":
                written = {"delta": item["arguments"], **where}
                yield {"type": "response.function_call_arguments.delta", **written}
            elif item["content"][0]["type"] == "refusal":
                refused = {"delta": item["content"][0]["refusal"], "content_index": 0, **where}
                yield {"type": "response.refusal.delta", **refused}
            else:
                for piece in _pieces(item["content"][0]["text"]):
                    shown = {"delta": piece, "content_index": 0, "logprobs": [], **where}
                    yield {"type": "response.output_text.delta", **shown}
            yield {"type": "response.output_item.done", "output_index": at, "item": item}
        response = self._response(items, asked, _finish(said))
        yield {"type": f"response.{response['status']}", "response": response}

    # Chat Completions API.

    def _chat_call(self, call: Call) -> dict[str, Any]:
        id = f"call_{next(self._numbers)}" if call.id is None else call.id
        return {"id": id, "type": "function", "function": {"name": call.name, "arguments": call.written}}

    def _chat_deltas(self, said: Say | Refuse) -> Iterator[dict[str, Any]]:
        yield {"role": "assistant", "content": None}
        if isinstance(said, Refuse):
            yield {"refusal": said.text}
            return
        for piece in _pieces(said.text):
            yield {"content": piece}
        for at, call in enumerate(said.calls):
            yield {"tool_calls": [{"index": at, **self._chat_call(call)}]}

    def _chunk(self, asked: Asked, delta: dict[str, Any], finish: str | None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return self._completion(asked, "chat.completion.chunk", [choice])

    def _completion(self, asked: Asked, kind: str, choices: list[Any]) -> dict[str, Any]:
        id = f"chat_{next(self._numbers)}"
        return {"id": id, "object": kind, "created": 0, "model": asked.json["model"], "choices": choices}


_MODELS = {"object": "list", "data": [{"id": "tiny", "object": "model", "created": 0, "owned_by": "us"}]}
_CHAT_USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def _said(step: Say | Call | Refuse | list[Call]) -> Say | Refuse:
    if isinstance(step, Call):
        return Say("", (step,))
    return Say("", tuple(step)) if isinstance(step, list) else step


def _finish(said: Say | Refuse) -> str:
    return (isinstance(said, Say) and said.finish) or ("tool_calls" if _calls(said) else "stop")


def _calls(said: Say | Refuse) -> tuple[Call, ...]:
    return said.calls if isinstance(said, Say) else ()


def _pieces(text: str) -> list[str]:
    return [text[at : at + PIECE] for at in range(0, len(text), PIECE)]


def _is_piece(event: bytes) -> bool:
    if event.startswith(b"data: [DONE]"):
        return False
    data = json.loads(event.removeprefix(b"data: "))
    if "choices" in data:
        return any(choice["delta"].get("content") for choice in data["choices"])
    return bool(data["type"] == "response.output_text.delta")


def _sse(data: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(data).encode() + b"\n\n"


def _head(status: int, headers: dict[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} Scripted", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode()


_STREAM = _head(200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"})


def _chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def _whole(body: bytes, type: str, status: int = 200, extra: dict[str, str] | None = None) -> bytes:
    return _head(status, {"content-type": type, "content-length": str(len(body))} | (extra or {})) + body


async def _write(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    await writer.drain()
    await asyncio.sleep(0)


async def _some_steps() -> None:
    for _ in range(STEPS):
        await asyncio.sleep(0)


async def _read(reader: asyncio.StreamReader) -> Asked | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Asked(first.split()[1], headers, json.loads(body or b"{}"))
