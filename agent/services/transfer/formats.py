"""Reads what other programs export as the messages and facts that an import takes: ChatGPT's and Claude's
conversations, mem0's memories, and lines of `{role, content}`.

Each conversation becomes one of the person's own. Of a conversation with branches the one that is shown last
is taken. Images, tool calls and what the system said are left out.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from agent.errors import BadInput
from agent.types.checks import reads_arguments

Message = dict[str, Any]
"""`id`, `chat`, `role`, `author`, `text`, and `sent_at`, which is None where nobody knows."""

SPEAKERS = {"user": "user", "human": "user", "assistant": "assistant", "model": "assistant"}
TIMES = ("sent_at", "timestamp", "created_at", "create_time")


@reads_arguments
def read_json(data: str | bytes) -> Any:
    """Return JSON, or the list of what stands on the lines. Raises BadInput."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        try:
            return [json.loads(line) for line in data.splitlines() if line.strip()]
        except (ValueError, RecursionError):
            raise BadInput(f"this is no JSON: {error}") from None


def messages_in(given: Any, user: str) -> list[Message] | None:
    """Return the messages of an export in order; None if it is none of these. Raises BadInput."""
    entries = given if isinstance(given, list) else [given]
    if not entries or not isinstance(entries[0], Mapping):
        return None
    read = next((read for field, read in _READERS.items() if field in entries[0]), None)
    if read is None:
        return None
    found: list[Message] = []
    for number, entry in enumerate(entries, start=1):
        try:
            found += read(entry, user)
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
            why = f"{type(error).__name__}: {str(error)[:100]}"
            raise BadInput(f"entry {number} cannot be read: {why}; nothing was imported") from error
    return found


def facts_in(given: Any) -> list[dict[str, Any]] | None:
    """Return the facts of an export of mem0 as fields of an exported memory; None if it is none."""
    entries = given.get("results", given.get("memories")) if isinstance(given, Mapping) else given
    if not isinstance(entries, list) or not entries:
        return None
    if not all(isinstance(entry, Mapping) and isinstance(entry.get("memory"), str) for entry in entries):
        return None
    return [
        {
            "content": entry["memory"],
            "subjects": entry.get("categories") or [],
            "created_at": entry.get("updated_at") or entry.get("created_at"),
        }
        for entry in entries
    ]


def _chatgpt(talk: Mapping[str, Any], user: str) -> Iterator[Message]:
    nodes, shown = talk["mapping"], talk.get("current_node")
    path: list[Mapping[str, Any]] = []
    while shown and len(path) < len(nodes):
        path.append(nodes[shown])
        shown = nodes[shown].get("parent")
    chat = talk.get("conversation_id") or talk.get("id") or talk["title"]
    for node in reversed(path):
        message = node.get("message") or {}
        hidden = (message.get("metadata") or {}).get("is_visually_hidden_from_conversation")
        content = message.get("content") or {}
        if hidden or message.get("recipient", "all") != "all" or "parts" not in content:
            continue
        at = message.get("create_time") or talk["create_time"]
        yield from _message(
            message["author"]["role"], content["parts"], at, user, f"chatgpt {node['id']}", chat
        )


def _claude(talk: Mapping[str, Any], user: str) -> Iterator[Message]:
    for message in talk["chat_messages"]:
        parts = message.get("text") or message.get("content") or ""
        id, at = f"claude {message['uuid']}", message["created_at"]
        yield from _message(message["sender"], parts, at, user, id, talk["uuid"])


def _line(entry: Mapping[str, Any], user: str) -> Iterator[Message]:
    at = next((entry[name] for name in TIMES if entry.get(name)), None)
    chat, id = entry.get("conversation", entry.get("conversation_id", "imported")), entry.get("id")
    yield from _message(entry["role"], entry["content"], at, user, id and f"line {id}", str(chat))


_READERS = {"mapping": _chatgpt, "chat_messages": _claude, "role": _line}


def _message(
    role: str, parts: str | Sequence[Any], at: Any, user: str, id: str | None, chat: str
) -> Iterator[Message]:
    said = [parts] if isinstance(parts, str) else [_text(part) for part in parts or ()]
    text = "\n".join(filter(None, (one.strip() for one in said)))
    if role not in SPEAKERS or not text:
        return
    moment = datetime.fromtimestamp(at, UTC) if isinstance(at, int | float) else at
    author = user if SPEAKERS[role] == "user" else "assistant"
    yield {"id": id, "chat": chat, "role": SPEAKERS[role], "author": author, "text": text, "sent_at": moment}


def _text(part: Any) -> str:
    return part if isinstance(part, str) else str(part.get("text") or "")
