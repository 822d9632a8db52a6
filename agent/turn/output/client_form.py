"""The answer in the form that a client of a chat API wants: up to a stop sequence, or as its JSON object."""

import json
from collections.abc import Callable
from typing import Any

from pydantic_core import from_json

from agent.errors import AnswerMisfit
from agent.models.json_objects import objects_in
from agent.turn.client.json_schema import fault_in
from agent.turn.output.parse import Answer
from agent.turn.output.written_memory import drafts_in
from agent.types.client import AnswerForm
from memory.records import Draft


class StopText:
    """Passes text on until one of the stop sequences. What may be the beginning of one waits."""

    def __init__(self, stops: tuple[str, ...], on_text: Callable[[str], None]) -> None:
        self._stops, self._on_text = stops, on_text
        self._waits = max(map(len, stops), default=1) - 1
        self._text = ""
        self._stopped = False

    def __call__(self, text: str) -> None:
        self._text += "" if self._stopped else text
        before = until_stop(self._text, self._stops)
        self._stopped = self._stopped or before != self._text
        self._pass_on(before, 0 if self._stopped else self._waits)

    def end(self) -> None:
        """Pass on what waits."""
        self._pass_on(self._text, 0)

    def _pass_on(self, text: str, waits: int) -> None:
        ready = max(0, len(text) - waits)
        self._text = text[ready:]
        if ready:
            self._on_text(text[:ready])


def until_stop(text: str, stops: tuple[str, ...]) -> str:
    """Return the text before the first stop sequence in it."""
    return text[: min((at for stop in stops if (at := text.find(stop)) >= 0), default=len(text))]


class FormStream:
    """Passes on the JSON object that a client wants as the model writes it, if the server enforces its form;
    else nothing, as the model may yet have to be asked once more."""

    def __init__(self, enforced: bool) -> None:
        self._enforced = enforced
        self._held = ""
        self.shown = ""

    def feed(self, text: str) -> str:
        """Return what can be shown now, without white space around the object."""
        text = self._held + text
        start = text if self.shown else text.lstrip()
        ready = start.rstrip() if self._enforced and (self.shown or start).startswith("{") else ""
        self._held = start[len(ready) :]
        self.shown += ready
        return ready


def shaped(raw: str, form: AnswerForm) -> Answer:
    """Return the answer whose message is the JSON object that the client wants: as it was written, if there
    is nothing else. Raises AnswerMisfit if the model did not write one."""
    value = _object_in(raw)
    memories: tuple[Draft, ...] = ()
    candidates = [value]
    if value and value.keys() >= {"message", "memories"}:  # the usual answer around it
        memories = drafts_in(value["memories"])
        whole = "message" in (form.schema or {}).get("properties", ())
        candidates = [_object_in(value["message"]), value if whole else None]
    fault: str | None = "it is no JSON object"
    for candidate in (one for one in candidates if one is not None):
        fault = fault_in(candidate, form.schema) if form.schema else None
        if fault is None:
            alone = candidate is value and _read(raw) == value
            return Answer(raw.strip() if alone else json.dumps(candidate, ensure_ascii=False), memories)
    raise AnswerMisfit(f"response_format: the model's answer does not fit it: {fault}")


def _read(text: str) -> object:
    try:
        return from_json(text.strip())
    except ValueError:
        return None


def _object_in(text: object) -> dict[str, Any] | None:
    """Return the JSON object in the text, mended where it is broken."""
    read = _read(text) if isinstance(text, str) else text
    if isinstance(text, str) and not isinstance(read, dict):
        read = next((one.value for one in objects_in(text)), None)
    return read if isinstance(read, dict) else None
