"""Where a request is said: what the client's name for its conversation means.

Open WebUI names more than chats: one that it does not keep begins with `temporary:`, or `local:` in older
versions, and a channel, where several people talk, with `channel:`.
"""

from dataclasses import dataclass

from agent.services.conversations import chat_of, conversation_id
from agent.surfaces.http.errors import forbidden
from agent.surfaces.http.identity import Caller
from memory.audience import PRIVATE, Place

TEMPORARY = ("temporary:", "local:")
CHANNEL = "channel:"
CHANNELS = "open-webui"
"""The outer name of the places that are channels."""


@dataclass(frozen=True, slots=True)
class Where:
    user: str | None
    """Who speaks; None: the turn is anonymous, so nothing is read for it and nothing of it is kept."""
    place: Place = PRIVATE
    conversation: str | None = None
    """The id of the named conversation."""


def where(name: str | None, user: str | None, caller: Caller) -> Where:
    """Return where the user speaks. Raises ApiError for a channel that a user's key names: only a service can
    tell that they are in it."""
    if name and name.startswith(TEMPORARY):
        return Where(None)
    if name and name.startswith(CHANNEL):
        if caller.key and caller.key.kind == "user":
            raise forbidden("a channel is a place where others talk too: only a service's key may name it")
        return Where(user, Place((CHANNELS, name.removeprefix(CHANNEL))))
    return Where(user, PRIVATE, conversation_id(user, name))


def name_of(conversation: str) -> str:
    """Return what the client calls the conversation with this id."""
    if conversation.startswith("place:"):
        return CHANNEL + Place.of_key(conversation).path[-1]
    return chat_of(conversation)
