"""Read a server's answer, whole or streamed.

A whole answer is read as a stream of one piece. So a server may send JSON where a stream was requested, and
a stream where JSON was.
"""

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputRefusal,
    ResponseOutputText,
    ResponseReasoningItem,
)

from agent.models.wire.errors import ServerError
from agent.models.wire.pieces import CallsInPieces, merged, thoughts_in, wanted_back

Json = dict[str, Any]
Finish = Literal["stop", "tool_calls", "length", "content_filter"]
_FINISHES: Mapping[Any, Finish] = {
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "model_length", "limit"), "length"),
    **dict.fromkeys(("content_filter", "safety", "recitation", "blocklist", "sensitive"), "content_filter"),
}
"""Servers' words for an answer that was cut off; any other word means a complete answer."""
_THOUGHTS = ("response.reasoning_text.delta", "response.reasoning_summary_text.delta")
WITHHELD = "The model's provider withheld the answer (its content filter)."


async def pieces(chunks: AsyncIterator[bytes]) -> AsyncGenerator[Json]:
    """Yield the JSON objects of a body: a single one, one a line, or events of a stream. Skip the rest."""
    whole = begun = event = b""
    async for line in _lines(chunks):
        text = line.strip().removeprefix(b"\xef\xbb\xbf")
        name, _, data = text.partition(b":")
        if whole or (not event and text[:1] in (b"{", b"[")):
            whole += line
        elif name == b"event":
            event = data.strip().removeprefix(b"event:").strip()
        elif name == b"data" or text[:1] == b"{":
            data, event = data.strip() if name == b"data" else text, event or b"data"
            begun = data if _read(data) is not None else begun + data
            if begun == b"[DONE]":
                yield {"done": True}
            elif _read(begun) is None and event == b"error":
                yield {"error": begun.decode(errors="replace")}
            elif _read(begun) is None:  # one object in several lines
                continue
            for value in _objects(begun):
                yield value
            begun = b""
        elif not text:
            begun = b""
    for value in _objects(whole):
        yield value


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the lines. Separators such as U+2028 do not end a line, since JSON may contain them."""
    unfinished = b""
    async for chunk in chunks:
        *lines, unfinished = (unfinished + chunk).splitlines(keepends=True) or [b""]
        for line in lines:
            yield line
        if unfinished.endswith(b"\n"):
            yield unfinished
            unfinished = b""
    yield unfinished


def _objects(text: bytes) -> Iterator[Json]:
    """Yield the objects in a text that is one JSON value, or one a line."""
    values = [_read(text)]
    for value in values if values != [None] else map(_read, text.splitlines()):
        value = value[0] if isinstance(value, list) and len(value) == 1 else value
        if isinstance(value, dict):
            yield value


def _read(text: bytes) -> Any:
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None


@dataclass
class Answer:
    """What a server has answered so far."""

    items: list[Any] = field(default_factory=list)
    """Reasoning, message and tool calls, as items of the Agents SDK; `end` fills it."""
    text: str = ""
    thought: str = ""
    """The model's thoughts in the last piece, if the server separates them from the answer."""
    refusal: str = ""
    finish: Finish | None = None
    usage: Mapping[str, Any] = field(default_factory=dict)
    thinks: bool = False
    """Whether the server separated the model's thoughts from its answer."""
    whole: bool = False
    """Whether the server has sent the end of the answer."""

    @property
    def begun(self) -> bool:
        """Whether the answer has content, or has ended without."""
        return bool(self.whole or self.text or self.refusal)

    def message(self) -> ResponseOutputMessage:
        """Return the message as an item, `incomplete` if it was cut off."""
        withheld = self.finish == "content_filter" and not self.text
        refusal = self.refusal or (WITHHELD if withheld else "")
        return message_item(self.text, refusal, self.finish or "stop")


def message_item(text: str, refusal: str = "", finish: Finish = "stop") -> ResponseOutputMessage:
    """Return a message as an item of the Agents SDK, `incomplete` if it was cut off."""
    cut = finish in ("length", "content_filter")
    parts: list[Any] = []
    if text:
        parts.append(ResponseOutputText(type="output_text", text=text, annotations=[], logprobs=[]))
    if refusal:
        parts.append(ResponseOutputRefusal(type="refusal", refusal=refusal))
    message = ResponseOutputMessage(
        id="message",
        type="message",
        role="assistant",
        content=parts,
        status="incomplete" if cut else "completed",
    )
    return message.model_copy(update={"finish": finish}) if cut else message


def completed(response: Response) -> ResponseCompletedEvent:
    """Return the last event of a stream."""
    return ResponseCompletedEvent.construct(type="response.completed", response=response, sequence_number=0)


@dataclass
class ChatAnswer(Answer):
    """An answer of chat completions."""

    _calls: CallsInPieces = field(default_factory=CallsInPieces)
    _wanted_back: Json = field(default_factory=dict)

    def add(self, piece: Json) -> str:
        """Add a piece, and return its text. Raises ServerError."""
        self.whole, self.thought = self.whole or "done" in piece, ""
        choices = piece.get("choices")
        bare = not isinstance(choices, list) and piece.keys() & {"message", "detail"}
        if piece.get("error") or bare:
            raise ServerError(piece)
        choices = [one for one in choices if isinstance(one, dict)] if isinstance(choices, list) else []
        for place in (piece, piece.get("x_groq"), *choices):
            if isinstance(place, Mapping) and isinstance(place.get("usage"), Mapping):
                self.usage = place["usage"]
        self.whole = self.whole or any("message" in one for one in choices)
        choice = next((one for one in choices if not one.get("index")), None)
        return self._add(choice) if choice else ""

    def _add(self, choice: Json) -> str:
        message = choice.get("delta") or choice.get("message") or {"content": choice.get("text")}
        if not isinstance(message, Mapping):
            message = {"content": message}
        if reason := choice.get("finish_reason"):
            self.finish = _FINISHES.get(str(reason).lower(), "stop")
            self.whole = True
            if reason == "error":
                raise ServerError(choice)
        content = message.get("content")
        text, thoughts = _text_and_thoughts(content)
        if self.text and not choice.get("delta") and text.startswith(self.text):
            text, thoughts, message = text[len(self.text) :], "", {}  # it repeats the whole message
        self.thought = thoughts or thoughts_in(message)
        self.text += text
        self.refusal += _text_and_thoughts(message.get("refusal"))[0]
        back = wanted_back(message) | (
            {"content": content} if thoughts or "content" in self._wanted_back else {}
        )
        self._wanted_back = merged(self._wanted_back, back)
        self._calls.add(message.get("tool_calls"), message.get("function_call"))
        self.thinks = bool(self._wanted_back)
        return text

    @property
    def begun(self) -> bool:
        return super().begun or any(True for _ in self._calls.made())

    def end(self, tools: Collection[str]) -> None:
        """Convert what was received to items. A call whose name contains that of a tool gets that name."""
        if not (self.text or self.refusal) and self.finish in (None, "stop"):
            thoughts = thoughts_in(self._wanted_back).strip() if not any(self._calls.made()) else ""
            self.text = thoughts if thoughts.startswith(("{", "```")) else ""  # an answer sent as thoughts
        calls = [_function_call(call, tools) for call in self._calls.made()]
        message = self.message()
        if message.content or (message.status == "incomplete" and not calls):
            self.items.append(message)
        if self._wanted_back:
            raw = {"id": "thoughts", "provider_data": self._wanted_back}
            self.items.insert(0, _reasoning(raw))
        self.items += calls


@dataclass
class ResponsesAnswer(Answer):
    """An answer of the Responses API."""

    _output: list[Json] = field(default_factory=list)

    @property
    def begun(self) -> bool:
        return super().begun or bool(self._output)

    def add(self, piece: Json) -> str:
        """Add an event or a whole response, and return its text. Raises ServerError."""
        kind, self.thought = str(piece.get("type") or ""), ""
        if kind == "error" or (piece.get("error") and "output" not in piece):
            raise ServerError(piece)
        if kind == "response.output_text.delta":
            text = _text_and_thoughts(piece.get("delta"))[0]
            self.text += text
            return text
        if kind in _THOUGHTS:
            self.thought = _text_and_thoughts(piece.get("delta"))[0]
        if kind == "response.output_item.done" and isinstance(piece.get("item"), dict):
            self._output.append(piece["item"])
        response = piece.get("response") if kind else piece
        ended = kind in ("response.completed", "response.incomplete", "response.failed", "response.done")
        if isinstance(response, dict) and (ended or "output" in piece):
            return self._ended(response)
        return ""

    def _ended(self, response: Json) -> str:
        if response.get("status") in ("failed", "cancelled") and response.get("error"):
            raise ServerError(response)
        self.whole = True
        if isinstance(response.get("usage"), Mapping):
            self.usage = response["usage"]
        output = response.get("output")
        output = output if isinstance(output, list) else [output]
        self._output = [item for item in output if isinstance(item, dict)] or self._output
        if response.get("status") == "incomplete":
            details = response.get("incomplete_details")
            reason = details.get("reason") if isinstance(details, dict) else details
            self.finish = _FINISHES.get(str(reason).lower(), "length")
        sent = len(self.text)
        messages = [item for item in self._output if item.get("type") == "message"]
        if texts := [_text_and_thoughts(item.get("content"))[0] for item in messages]:
            self.text = "".join(texts)
        self.refusal = "".join(_refused(item.get("content")) for item in messages)
        return self.text[sent:]

    def end(self, tools: Collection[str]) -> None:
        """Convert what was received to items, each with the fields that the server sent."""
        message = self.message()
        for raw in self._output:
            kind = raw.get("type")
            if kind == "message" and message not in self.items:
                message.id = str(raw.get("id") or message.id)
                self.items.append(message)
            elif kind == "function_call":
                self.items.append(_function_call(raw, tools))
            elif kind == "reasoning":
                self.items.append(_reasoning(raw))
                self.thinks = True
        calls = any(item.type == "function_call" for item in self.items)
        if message not in self.items and (message.content or (message.status == "incomplete" and not calls)):
            self.items.append(message)


def _reasoning(raw: Json) -> ResponseReasoningItem:
    about: Any = {"type": "reasoning", "summary": [], **raw}
    return ResponseReasoningItem.construct(**about)


def _function_call(raw: Mapping[str, Any], tools: Collection[str]) -> ResponseFunctionToolCall:
    about = {"type": "function_call", "status": "completed", **raw}
    about["call_id"] = str(raw.get("call_id") or raw.get("id") or "")
    about["name"] = name = str(raw.get("name") or "")
    if name not in tools:  # with a namespace before it, or template tokens after it
        inside = [tool for tool in tools if re.search(rf"(?<!\w){re.escape(tool)}(?!\w)", name)]
        about["name"] = inside[0] if len(inside) == 1 else name
    arguments = raw.get("arguments")
    about["arguments"] = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    return ResponseFunctionToolCall.construct(**about)


def _text_and_thoughts(content: Any) -> tuple[str, str]:
    """Return the text and the thoughts of a message's content, which is a string or a list of parts."""
    if isinstance(content, str):
        return content, ""
    if isinstance(content, Mapping):
        thoughts = content.get("thinking", content.get("reasoning"))
        if thoughts is not None or content.get("type") in ("thinking", "reasoning"):
            return "", "".join(_text_and_thoughts(thoughts))
        if content and content.keys().isdisjoint(("type", "text", "content", "value")):
            return json.dumps(content), ""  # the server has parsed an answer that is JSON
        return _text_and_thoughts(content.get("text", content.get("content", content.get("value"))))
    if isinstance(content, list):
        parts = [_text_and_thoughts(part) for part in content]
        return "".join(text for text, _ in parts), "".join(thoughts for _, thoughts in parts)
    return "", ""


def _refused(content: Any) -> str:
    parts = content if isinstance(content, list) else []
    return "".join(str(part.get("refusal") or "") for part in parts if isinstance(part, Mapping))
