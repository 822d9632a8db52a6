"""Reads exports of other programs as messages and facts to import: conversations of ChatGPT and Claude,
memories of mem0, lines of `{role, content}`, and the archives that ChatGPT and Claude send.

Each conversation becomes a conversation of the person. If it has branches, only the last is read. Pictures,
tool calls, thoughts and system messages are left out. Unreadable parts are listed, and the rest is imported.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from io import BytesIO
from itertools import takewhile
from pathlib import PurePosixPath
from typing import Any
from zipfile import BadZipFile, ZipFile

from agent.errors import BadInput
from agent.types.arguments import MAX_MESSAGE, moment_of, read_value
from agent.types.checks import checks_call

Message = dict[str, Any]
"""`id`, `chat`, `role`, `author`, `text`, and `sent_at`, None if unknown."""

Nodes = dict[str, Mapping[str, Any]]
"""Messages by their ids."""
NIL = "00000000-"
"""The beginning of the parent's id of a first message."""

SPEAKERS = {"user": "user", "human": "user", "assistant": "assistant", "model": "assistant"}
TIMES = ("sent_at", "timestamp", "created_at", "create_time")
LARGEST_ARCHIVE = 1_000_000_000
"""The most bytes of the conversations in an archive, unpacked."""

UNREADABLE = (BadInput, AttributeError, KeyError, IndexError, TypeError, ValueError, OverflowError)
"""The exceptions that reading damaged JSON values raises."""


@dataclass(frozen=True, slots=True)
class Conversations:
    """The messages of an export in order, and one line for each part that cannot be read."""

    messages: list[Message]
    unreadable: list[str]


@checks_call
def read_json(data: str | bytes) -> Any:
    """Parse JSON, JSON Lines, or the conversations of a zip archive. Raises BadInput."""
    if isinstance(data, bytes) and data.startswith(b"PK\x03\x04"):
        return _unpack(data)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        try:
            return [json.loads(line) for line in data.splitlines() if line.strip()]
        except (ValueError, RecursionError):
            raise BadInput(f"this is no JSON: {error}") from None


def messages_in(export: Any, user: str) -> Conversations | None:
    """Return the messages of another program's export; None for any other value."""
    entries = export if isinstance(export, list) else [export]
    readers = [_reader_of(entry) for entry in entries]
    if not any(readers):
        return None
    read = Conversations([], [])
    for number, (entry, reader) in enumerate(zip(entries, readers, strict=True), start=1):
        name = f"entry {number}"
        if reader is None:
            read.unreadable.append(f"{name} cannot be read: it is no conversation")
            continue
        if isinstance(title := entry.get("title") or entry.get("name"), str):
            name = f"{name} {title[:60]!r}"
        try:
            for message in reader(entry, user):
                _take(message, name, read)
        except UNREADABLE as error:
            read.unreadable.append(f"{name} cannot be read: {what_is_wrong(error)}")
    return read


def facts_in(export: Any) -> list[dict[str, Any]] | None:
    """Return the facts of a mem0 export as fields of exported memories; None for any other value."""
    entries = export.get("results", export.get("memories")) if isinstance(export, Mapping) else export
    if not isinstance(entries, list):
        return None
    if not any(isinstance(entry, Mapping) and isinstance(entry.get("memory"), str) for entry in entries):
        return None
    return [_mem0(entry) if isinstance(entry, Mapping) else entry for entry in entries]


def require_storable(message: Mapping[str, Any]) -> None:
    """Raise BadInput for a message that is too long or has no time."""
    if len(text := str(message["text"])) > MAX_MESSAGE:
        raise BadInput(f"it has {len(text):,} characters, and a message may have {MAX_MESSAGE:,}")
    if message["sent_at"] is not None or "chat" not in message:
        read_value("sent_at", moment_of, message["sent_at"])


def what_is_wrong(error: Exception) -> str:
    """Describe an error of `UNREADABLE`, short enough for a long list."""
    if isinstance(error, KeyError):
        return f"it has no {str(error.args[0])[:60]!r}"
    return str(error)[:200] if isinstance(error, BadInput) else f"{type(error).__name__}: {str(error)[:100]}"


def _unpack(data: bytes) -> list[Any]:
    """Return the contents of an archive's `conversations….json` files as one list."""
    try:
        with ZipFile(BytesIO(data)) as archive:
            files = [
                file
                for file in archive.infolist()
                if (path := PurePosixPath(file.filename)).name.startswith("conversations")
                and path.suffix == ".json"
            ]
            if not files:
                raise BadInput("this archive has no conversations.json")
            if sum(file.file_size for file in files) > LARGEST_ARCHIVE:
                raise BadInput(
                    f"the conversations in this archive have more than {LARGEST_ARCHIVE:,} bytes; unpack it "
                    "and import its files one by one"
                )
            parts = [read_json(archive.read(file)) for file in sorted(files, key=lambda file: file.filename)]
    except (BadZipFile, NotImplementedError, RuntimeError, OSError, EOFError) as error:
        raise BadInput(f"this archive cannot be unpacked: {error}") from None
    return [entry for part in parts for entry in (part if isinstance(part, list) else [part])]


def _reader_of(entry: Any) -> Any:
    """Return the function that reads this entry; None if no format matches."""
    if not isinstance(entry, Mapping):
        return None
    return next((read for field, read in _READERS.items() if field in entry), None)


def _take(message: Message | Exception, name: str, read: Conversations) -> None:
    """Append the message, or a line that says why it cannot be read."""
    try:
        if isinstance(message, Exception):
            raise message
        require_storable(message)
        read.messages.append(message)
    except UNREADABLE as error:
        read.unreadable.append(f"a message of {name} cannot be read: {what_is_wrong(error)}")


def _mem0(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a memory. A memory with an `expiration_date` expires at the end of that day."""
    ends = entry.get("expiration_date")
    if isinstance(ends, str) and len(ends) == len("2027-01-05"):
        ends = datetime.combine(date.fromisoformat(ends), time.max, UTC).isoformat()
    return {
        "content": entry.get("memory"),
        "subjects": entry.get("categories") or [],
        "created_at": entry.get("updated_at") or entry.get("created_at"),
        "expires_at": ends,
    }


def _last_branch(nodes: Nodes, leaf: Any, parent: str, sent_at: Callable[[Any], str]) -> Nodes:
    """Return the nodes from the first to `leaf`, following `parent`; if the leaf is unknown, the branch with
    the latest node."""
    if isinstance(leaf, str) and leaf in nodes:
        return _branch(nodes, leaf, parent)
    parents = {str(node.get(parent)) for node in nodes.values()}
    branches = [_branch(nodes, id, parent) for id in nodes if id not in parents]
    return max(branches, key=lambda nodes: max(sent_at(node) for node in nodes.values()), default={})


def _branch(nodes: Nodes, leaf: str, parent: str) -> Nodes:
    """Return the nodes from the first to `leaf`. A missing parent is the node before its child."""
    path: Nodes = {}
    at: Any = leaf
    while isinstance(at, str) and at in nodes and at not in path:
        path[at] = nodes[at]
        at = nodes[at].get(parent)
    path = dict(reversed(path.items()))
    if at is None or at in path or str(at).startswith(NIL):
        return path
    return dict(takewhile(lambda node: node[0] not in path, nodes.items())) | path


def _chatgpt(talk: Mapping[str, Any], user: str) -> Iterator[Message | Exception]:
    nodes = {id: node for id, node in talk["mapping"].items() if isinstance(node, Mapping)}
    chat = talk.get("conversation_id") or talk.get("id") or talk["title"]
    yield from (BadInput(f"{id[:60]!r} is no message") for id in talk["mapping"].keys() - nodes.keys())

    def sent_at(node: Any) -> str:
        return f"{float((node.get('message') or {}).get('create_time') or 0):020.6f}"

    for id, node in _last_branch(nodes, talk.get("current_node"), "parent", sent_at).items():
        try:
            message = node.get("message") or {}
            hidden = (message.get("metadata") or {}).get("is_visually_hidden_from_conversation")
            content = message.get("content") or {}
            if hidden or message.get("recipient", "all") != "all" or "parts" not in content:
                continue
            at = message.get("create_time") or talk["create_time"]
            yield from _message(message["author"]["role"], content["parts"], at, user, f"chatgpt {id}", chat)
        except UNREADABLE as error:
            yield error


def _claude(talk: Mapping[str, Any], user: str) -> Iterator[Message | Exception]:
    sent: dict[str, Mapping[str, Any]] = {}
    for at, message in enumerate(talk["chat_messages"]):
        if isinstance(message, Mapping):
            sent[str(message.get("uuid") or f"{talk['uuid']} {at}")] = message
        else:
            yield BadInput(f"{str(message)[:60]!r} is no message")
    leaf, parent = talk.get("current_leaf_message_uuid"), "parent_message_uuid"
    if any(parent in message for message in sent.values()):
        sent = _last_branch(sent, leaf, parent, lambda message: str(message.get("created_at")))
    for id, message in sent.items():
        try:
            # If there are parts, `text` has placeholders for those that are not text.
            written = message.get("content") or message.get("text") or ""
            parts = [written] if isinstance(written, str) else list(written)
            for attached in message.get("attachments") or ():
                if text := attached.get("extracted_content"):
                    parts.append(f"{attached.get('file_name') or 'attachment'}:\n{text}")
            at = message["created_at"]
            yield from _message(message["sender"], parts, at, user, f"claude {id}", talk["uuid"])
        except UNREADABLE as error:
            yield error


def _line(entry: Mapping[str, Any], user: str) -> Iterator[Message | Exception]:
    at = next((entry[name] for name in TIMES if entry.get(name)), None)
    chat, id = entry.get("conversation", entry.get("conversation_id", "imported")), entry.get("id")
    yield from _message(entry["role"], entry["content"], at, user, id and f"line {id}", str(chat))


_READERS = {"mapping": _chatgpt, "chat_messages": _claude, "content": _line}


def _message(
    role: str, parts: str | Sequence[Any], at: Any, user: str, id: str | None, chat: str
) -> Iterator[Message | Exception]:
    texts: list[str] = []
    for part in [parts] if isinstance(parts, str) else parts or ():
        if isinstance(part, str | Mapping):
            texts.append(part if isinstance(part, str) else str(part.get("text") or ""))
        elif role in SPEAKERS:
            yield BadInput(f"a part of it is {part!r}")
    text = "\n".join(filter(None, (one.strip() for one in texts)))
    if role not in SPEAKERS or not text:
        return
    moment = datetime.fromtimestamp(at, UTC) if isinstance(at, int | float) else at
    author = user if SPEAKERS[role] == "user" else "assistant"
    yield {"id": id, "chat": chat, "role": SPEAKERS[role], "author": author, "text": text, "sent_at": moment}
