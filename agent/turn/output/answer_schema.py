"""The answer as a JSON schema: `message`, `memories` and `forget`. Its bounds are for models on one's own
machine: OpenAI's strict mode takes none."""

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
    content={"type": "string", "maxLength": 160, "description": "One fact, understood on its own."},
    subjects={
        "type": "array",
        "items": {"type": "string", "maxLength": 40},
        "maxItems": 4,
        "description": _TAGS,
    },
    ttl={"type": ["string", "null"], "maxLength": 10, "description": _TTL},
    type={"type": "string", "enum": list(get_args(MemoryType))},
    importance={"type": "number", "description": "0.0 to 1.0."},
    replaces={
        "type": ["string", "null"],
        "maxLength": 36,
        "description": "The id of the memory that this one corrects.",
    },
)
ANSWER_SCHEMA = RequestedSchema(
    "answer",
    strict_object(
        message={"type": "string", "maxLength": 1_800, "description": "What the user sees."},
        memories={"type": "array", "maxItems": 3, "description": _NEW_FACTS, "items": _MEMORY},
        forget={
            "type": "array",
            "maxItems": 2,
            "description": _FORGET,
            "items": {"type": "string", "maxLength": 160},
        },
    ),
)
