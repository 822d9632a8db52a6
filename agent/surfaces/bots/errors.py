"""Error messages for people in a chat: what to do, and the id under which the log has the details.

The message has no details: errors name machines and files, and other people may read along.
"""

import logging
from uuid import uuid4

from agent.errors import BadInput, ModelRejected, ModelUnavailable
from memory.errors import MemoryFault, NotFound
from memory.people.links import NotLinked

log = logging.getLogger("hachi.bots")

_MESSAGES: tuple[tuple[type[Exception], str], ...] = (
    (ModelUnavailable, "I can't think right now: the model does not answer. Please try again in a minute."),
    (ModelRejected, "I can't think right now: the model refused. Whoever runs me has to look into it."),
    (MemoryFault, "I can't reach my memory right now. Please try again in a minute."),
)
UNEXPECTED = "Something broke on my side. Please try again."


def describe_error(error: Exception) -> str:
    """Log the error and return a short message for the person, with its trace id. Errors about the person's
    own input are returned unchanged and not logged."""
    if isinstance(error, BadInput | NotFound | NotLinked):
        return str(error)
    trace_id = getattr(error, "trace_id", None) or f"trace_{uuid4().hex}"
    text = next((text for kind, text in _MESSAGES if isinstance(error, kind)), None)
    log.error("%s: %s: %s", trace_id, type(error).__name__, error, exc_info=error if text is None else None)
    return f"{text or UNEXPECTED} ({trace_id})"
