"""What a person in a chat hears when something went wrong: what to do, and the id under which whoever runs
the bot finds it in the log. No more: faults name machines, and others read along."""

import logging
from uuid import uuid4

from agent.errors import BadInput, ModelRejected, ModelUnavailable
from memory.errors import MemoryFault, NotFound

log = logging.getLogger("hachi.bots")

_SAID: tuple[tuple[type[Exception], str], ...] = (
    (ModelUnavailable, "I can't think right now: the model does not answer. Please try again in a minute."),
    (ModelRejected, "I can't think right now: the model refused. Whoever runs me has to look into it."),
    (MemoryFault, "I can't reach my memory right now. Please try again in a minute."),
)
BROKEN = "Something broke on my side. Please try again."


def told(error: Exception) -> str:
    """A short message for the person. All that went wrong is in the log, under the id in the message."""
    if isinstance(error, BadInput | NotFound):
        return str(error)  # about what they wrote, and for them
    trace_id = getattr(error, "trace_id", None) or f"trace_{uuid4().hex}"
    text = next((text for kind, text in _SAID if isinstance(error, kind)), None)
    log.error("%s: %s: %s", trace_id, type(error).__name__, error, exc_info=error if text is None else None)
    return f"{text or BROKEN} ({trace_id})"
