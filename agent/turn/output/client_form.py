"""The answer in the form that a client of a chat API wants: as its JSON object."""

import json
from typing import Any

from pydantic_core import from_json

from agent.errors import AnswerMisfit
from agent.models.json_objects import objects_in
from agent.turn.output.answer import Answer, new_memories_in
from agent.types.client import AnswerForm
from memory.records import NewMemory


def shaped(raw: str, form: AnswerForm) -> Answer:
    """Return the answer whose message is the JSON object that the client wants: unchanged, if the text is
    only that object. Raises AnswerMisfit if the model did not write one."""
    value = _object_in(raw)
    memories: tuple[NewMemory, ...] = ()
    candidates = [value]
    if value and value.keys() >= {"message", "memories"}:  # our usual answer, with the object in it
        memories = new_memories_in(value["memories"])
        whole = "message" in (form.schema or {}).get("properties", ())
        candidates = [_object_in(value["message"]), value if whole else None]
    fault: str | None = "it is no JSON object"
    for candidate in (one for one in candidates if one is not None):
        fault = None
        if form.schema:
            from agent.turn.client.json_schema import fault_in

            fault = fault_in(candidate, form.schema)
        if fault is None:
            as_written = candidate is value and _read(raw) == value
            return Answer(raw.strip() if as_written else json.dumps(candidate, ensure_ascii=False), memories)
    raise AnswerMisfit(f"response_format: the model's answer does not fit it: {fault}")


def _read(text: str) -> object:
    try:
        return from_json(text.strip())
    except ValueError:
        return None


def _object_in(value: object) -> dict[str, Any] | None:
    """Return the JSON object in a text, repaired if it is damaged."""
    if isinstance(value, str):
        value = _read(value) or next((one.value for one in objects_in(value)), None)
    return value if isinstance(value, dict) else None
