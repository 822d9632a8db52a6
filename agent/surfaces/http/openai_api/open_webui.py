"""Read what only Open WebUI sends: names of chats and channels, its own tasks, and templates."""

import re
from dataclasses import dataclass

from agent.services.sessions import chat_of, conversation_id
from agent.surfaces.http.errors import forbidden
from agent.surfaces.http.identity import Caller
from memory.audience import PRIVATE, Place

_TEMPLATE = "### Task:"
_CONVERSATIONS = (
    ("<chat_history>", "</chat_history>"),
    ("### Messages Being Compacted:", "### Recent Messages Kept In Context:"),
)
_SOURCES, _SOURCES_END = re.compile(r"<context>\s*<source\b"), re.compile(r"</source>\s*</context>")
_QUERY, _QUERY_ENDS = "<user_query>", "</user_query>"
_FILES, _FILES_END = "<attached_files>", "</attached_files>"
_ADDRESSED = re.compile(r"^You are (.{1,200}), participating in a (?:threaded|channel) conversation\.", re.M)
_CHOICE_OF_TOOLS = ("History:\n", "Query: ")
# Patterns are matched from left to right in linear time.

PICTURES_OF_A_TOOL = "Here are the images from the tool results above. Please analyze them."
"""The text that Open WebUI sends, as the user, with the pictures that a tool returned."""
TEMPORARY = ("temporary:", "local:")
"""Prefixes of the names of chats that Open WebUI does not store; older versions use the second."""
CHANNEL = "channel:"
"""Prefix of the name of a channel, where several people talk."""
CHANNELS = "open-webui"
"""The first part of the names of places that are channels."""


@dataclass(frozen=True, slots=True)
class TurnScope:
    user: str | None
    """Who speaks. None is an anonymous turn: nothing is read for it and nothing is stored."""
    place: Place = PRIVATE
    conversation: str | None = None
    """The id of the named conversation."""


def scope_of(name: str | None, user: str | None, caller: Caller) -> TurnScope:
    """Return where the user speaks. Raises ApiError if a user's key names a channel: only a service knows who
    its members are."""
    if caller.program or (name and name.startswith(TEMPORARY)):
        return TurnScope(None)
    if name and name.startswith(CHANNEL):
        if not caller.service:
            raise forbidden("a channel is a place where others talk too: only a service's key may name it")
        return TurnScope(user, Place((CHANNELS, name.removeprefix(CHANNEL))))
    return TurnScope(user, PRIVATE, conversation_id(user, name))


def name_of(conversation: str) -> str:
    """Return what the client calls the conversation with this id."""
    if conversation.startswith("place:"):
        return CHANNEL + Place.of_key(conversation).path[-1]
    return chat_of(conversation)


def is_client_task(text: str, instructions: str) -> bool:
    """Return whether a lone message is Open WebUI's template around a conversation, or asks which tools to
    call. A template around documents does not count; it may quote another template."""
    if not _in_template(text):
        return instructions.startswith("Available Tools:") and text.startswith(_CHOICE_OF_TOOLS)
    found = (text.find(begin) for begin, end in _CONVERSATIONS if 0 <= text.find(begin) < text.rfind(end))
    start = min(found, default=None)
    return start is not None and not _SOURCES.search(text, 0, start)


def below_documents(text: str) -> str:
    """Return the person's question, which follows the documents; empty if the text is not that template."""
    sources = _SOURCES.search(text) if _in_template(text) else None
    if not sources:
        return ""
    *_, end = (0, *(found.end() for found in _SOURCES_END.finditer(text, sources.end())))
    below = text[end:].strip() if end else ""
    query, ends, after = below.partition(_QUERY_ENDS)
    return after.strip() or below if ends and query.startswith(_QUERY) else below


def below_files(text: str) -> str:
    """Return the text after the list of files with which Open WebUI begins a message."""
    _, ends, told = text.partition(_FILES_END)
    return told.strip() or text if ends and text.startswith(_FILES) else text


def text_in_channel(text: str, author: str, instructions: str) -> str:
    """Return what the person wrote in a channel. Open WebUI puts their name before it, and replaces a mention
    of the model with the model's name, which its instructions state."""
    told = text.removeprefix(f"{author}: ")
    if named := _ADDRESSED.search(instructions):
        told = re.sub(rf"\A@?{re.escape(named[1])}(?!\w)[\s,:]*", "", told)
    return told or text


def _in_template(text: str) -> bool:
    return text.startswith(_TEMPLATE) and text[len(_TEMPLATE) : len(_TEMPLATE) + 1].isspace()
