"""Write a request in the shape that every server accepts.

One system message comes first, then user and assistant in turn: neighbours of one role are joined, and the
results of tools follow their calls. Text is a string and never null. Fields that are not needed are left out.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from agents import AgentOutputSchemaBase, ModelSettings

UNSAID = "…"
"""Filler where chat templates and Mistral require a message: the user's at the beginning, and the assistant's
between results of tools and the user's next message."""
NO_RESULT = "(no result)"
_SHORT_ID = re.compile(r"[a-zA-Z0-9]{9}")
_SAMPLING = ("temperature", "top_p", "frequency_penalty", "presence_penalty", "store", "metadata")

Json = dict[str, Any]


NOT_SHOWN = "(There is a picture here. You are not shown it: the model that you are sees none. Say so.)"


class Request(NamedTuple):
    """The parts of a model call."""

    system: str | None
    items: Sequence[Mapping[str, Any]]
    settings: ModelSettings
    tools: Sequence[Any]
    schema: AgentOutputSchemaBase | None
    stream: bool


def chat_body(model: str, request: Request, *, limit_name: str, short_ids: bool) -> Json:
    """Return the body of a request to chat completions."""
    settings, schema = request.settings, _schema(request.schema)
    return _body(
        model,
        request,
        [{"type": "function", "function": _function(tool)} for tool in request.tools],
        lambda name: {"type": "function", "function": {"name": name}},
        messages=chat_messages(request.system, request.items, short_ids),
        reasoning_effort=settings.reasoning and settings.reasoning.effort,
        verbosity=settings.verbosity,
        response_format=schema and {"type": "json_schema", "json_schema": schema},
        stream_options={"include_usage": True} if request.stream and settings.include_usage else None,
        **{limit_name: settings.max_tokens},
    )


def responses_body(model: str, request: Request) -> Json:
    """Return the body of a request to the Responses API."""
    settings, schema = request.settings, _schema(request.schema)
    text = {"format": schema and {"type": "json_schema", **schema}, "verbosity": settings.verbosity}
    return _body(
        model,
        request,
        [{"type": "function", **_function(tool), "strict": False} for tool in request.tools],
        lambda name: {"type": "function", "name": name},
        instructions=request.system,
        input=response_items(request.items),
        max_output_tokens=settings.max_tokens,
        include=["reasoning.encrypted_content"] if settings.store is False else None,
        reasoning=settings.reasoning and settings.reasoning.model_dump(exclude_none=True),
        text=_without_nothing(text) or None,
    )


def _body(model: str, request: Request, tools: list[Json], pick: Callable[[str], Json], **other: Any) -> Json:
    """Return the `other` fields and those that both APIs share; `pick` writes the choice of one tool."""
    settings, choice = request.settings, request.settings.tool_choice
    body = {
        "model": model,
        **other,
        **{name: getattr(settings, name) for name in _SAMPLING},
        "tools": tools or None,
        "tool_choice": choice if choice in (None, "auto", "required", "none") else pick(str(choice)),
        "parallel_tool_calls": settings.parallel_tool_calls if tools else None,
        "stream": request.stream or None,
    }
    extra = settings.extra_body if isinstance(settings.extra_body, Mapping) else {}
    return _without_nothing(body) | dict(settings.extra_args or {}) | dict(extra)


def chat_messages(
    system: str | None, items: Iterable[Mapping[str, Any]], short_ids: bool = False
) -> list[Json]:
    """Return the messages of chat completions."""
    items = list(items)
    results = defaultdict[str, list[str]](list)
    for item in items:
        if item.get("type") == "function_call_output":
            results[item["call_id"]].append(_text(item["output"]))
    messages, wanted_back, calling = list[Json](), dict[str, Any](), False
    for item in items:
        kind = item.get("type", "message")
        if kind == "function_call_output":
            calling = False
        elif kind == "reasoning":
            wanted_back = dict(item.get("provider_data") or {})
        elif kind == "message" and item["role"] in ("system", "developer"):
            system = f"{system}\n\n{_text(item['content'])}" if system else _text(item["content"])
        elif kind == "message":
            calling = _add(messages, item["role"], _content(item["content"]), wanted_back)
            wanted_back = {} if calling else wanted_back
        elif kind == "function_call":
            if not (calling and messages and messages[-1]["role"] == "assistant"):
                messages.append({"role": "assistant", "content": ""})
            messages[-1] |= wanted_back
            messages[-1].setdefault("tool_calls", []).append(_chat_call(item, short_ids))
            messages[-1].setdefault("ids", []).append(item["call_id"])
            calling, wanted_back = True, {}
    if messages and messages[0]["role"] != "user":
        messages.insert(0, {"role": "user", "content": UNSAID})
    first = [{"role": "system", "content": system}] if system else []
    return [*first, *(each for message in messages for each in _with_results(message, results))]


def _add(messages: list[Json], role: str, content: Any, wanted_back: Json) -> bool:
    """Add a message, or join it with its neighbour. Return whether calls after it are part of it."""
    before: Json = messages[-1] if messages else {"role": ""}
    if role == "user" and "tool_calls" in before:
        messages.append({"role": "assistant", "content": UNSAID})
    if before["role"] != role or "tool_calls" in before:
        messages.append({"role": role, "content": content, **(wanted_back if role == "assistant" else {})})
    elif isinstance(before["content"], str) and isinstance(content, str):
        before["content"] = "\n\n".join(filter(None, (before["content"], content)))
    else:
        before["content"] = [*_parts(before["content"]), *_parts(content)]
    return role == "assistant"


def _with_results(message: Json, results: Mapping[str, list[str]]) -> Iterable[Json]:
    """Yield a message and its calls' results. A call without one gets a filler, or servers refuse it."""
    ids: Sequence[str] = message.pop("ids", ())
    if message["content"] or ids:
        yield message
    for call, id in zip(message.get("tool_calls", ()), ids, strict=True):
        waiting = results.get(id)
        text = waiting.pop(0) if waiting else NO_RESULT
        yield {"role": "tool", "tool_call_id": call["id"], "content": text}


def _chat_call(item: Mapping[str, Any], short_ids: bool) -> Json:
    function, id = {"name": item["name"], "arguments": item["arguments"] or "{}"}, str(item["call_id"])
    if short_ids and not _SHORT_ID.fullmatch(id):
        id = sha256(id.encode()).hexdigest()[:9]  # the same in every request; we store the original id
    call = {"id": id, "type": "function", "function": function}
    return call | dict(item.get("provider_data") or {})


def response_items(items: Iterable[Mapping[str, Any]]) -> list[Json]:
    """Return the input of the Responses API.

    A reasoning item without encrypted content is left out, since the server has not stored it. Calls and
    messages are then sent without their ids, or the server would require the reasoning.
    """
    bare = [{name: part for name, part in item.items() if name != "provider_data"} for item in items]
    empty = [item for item in bare if item.get("type") == "reasoning" and not item.get("encrypted_content")]
    sent = list[Json]()
    for item in bare:
        if item in empty:
            continue
        if empty and item.get("type", "message") in ("function_call", "message"):
            item.pop("id", None)
        before = sent[-1] if sent else {}
        texts = before.get("content"), item.get("content")
        alike = before.get("role") == item.get("role") and not {"id", "type"} & {*before, *item}
        if alike and all(isinstance(text, str) for text in texts):
            sent[-1] = before | {"content": "\n\n".join(map(str, texts))}
        else:
            sent.append(item)
    return sent


def without_pictures(items: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the items with words in place of images."""
    return with_pictures(items, lambda _: {"type": "input_text", "text": NOT_SHOWN})


def with_pictures(items: Iterable[Any], instead: Callable[[str], Json]) -> list[Any]:
    """Return the items with `instead(url)` in place of each image."""

    def part(content: Json) -> Json:
        return instead(content["image_url"]) if content.get("type") == "input_image" else content

    return [
        {**item, "content": [*map(part, item["content"])]} if isinstance(item.get("content"), list) else item
        for item in items
    ]


def _content(content: Any) -> Any:
    """Return a message's content: a string, unless it has pictures."""
    pictured = not isinstance(content, str) and any(part.get("type") == "input_image" for part in content)
    return [_part(part) for part in content] if pictured else _text(content)


def _part(part: Mapping[str, Any]) -> Json:
    if part.get("type") != "input_image":
        return {"type": "text", "text": _text([part])}
    return {
        "type": "image_url",
        "image_url": {"url": part["image_url"], "detail": part.get("detail") or "auto"},
    }


def _parts(content: Any) -> list[Json]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text") or part.get("refusal") or "") for part in content or ())


def _function(tool: Any) -> Json:
    return {"name": tool.name, "description": tool.description, "parameters": tool.params_json_schema}


def _schema(schema: AgentOutputSchemaBase | None) -> Json | None:
    if schema is None or schema.is_plain_text():
        return None
    about = {"strict": schema.is_strict_json_schema(), "schema": schema.json_schema()}
    return {"name": "final_output", **about}


def _without_nothing(body: Json) -> Json:
    return {name: value for name, value in body.items() if value is not None}
