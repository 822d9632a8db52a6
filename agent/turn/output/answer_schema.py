"""The answer as a JSON schema that OpenAI's strict mode accepts: `message`, `memories` and `forget`."""

from typing import get_args

from agent.models.ask import RequestedSchema, strict_object
from memory.records import MemoryType

_TAGS = "Flat lower-case tags: who and what it is about."
_TTL = "How long it holds: 1h, 1d, 7d, 30d, 2w. null is for ever."
_NEW_FACTS = "New facts worth keeping about the user and the people around them. Often empty."
_FORGET = (
    "What the user asks to forget, one sentence each, in the words they told it in. Nearly always empty."
)
_MEMORY = strict_object(
    content={"type": "string", "description": "One fact, understood on its own."},
    subjects={"type": "array", "items": {"type": "string"}, "description": _TAGS},
    ttl={"type": ["string", "null"], "description": _TTL},
    type={"type": "string", "enum": list(get_args(MemoryType))},
    importance={"type": "number", "description": "0.0 to 1.0."},
    replaces={"type": ["string", "null"], "description": "The id of the memory that this one corrects."},
)
ANSWER_SCHEMA = RequestedSchema(
    "answer",
    strict_object(
        message={"type": "string", "description": "What the user sees."},
        memories={"type": "array", "description": _NEW_FACTS, "items": _MEMORY},
        forget={"type": "array", "description": _FORGET, "items": {"type": "string"}},
    ),
)
