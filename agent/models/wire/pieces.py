"""Join the pieces in which servers send an answer: its tool calls, and the data that they want back.

Provider data is recognised by its fields and not by the model's name. A message's own fields
(`reasoning_content`, `reasoning_details`, signatures) travel with a reasoning item before it, and a call's
with the call, both as `provider_data`. The SDK passes items on unchanged, and a trace has them.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent.models.json_objects import objects_in

Json = dict[str, Any]

_WANTED_BACK = re.compile(r"reason|think|thought|signature|extra_content|provider_specific", re.IGNORECASE)
_WHOLE = frozenset({"type", "index", "id", "format", "role", "name"})
"""Fields that a stream repeats whole; others come in pieces."""


@dataclass
class _Call:
    index: Any
    id: str
    name: str
    pieces: list[str] = field(default_factory=list)
    extra: Json = field(default_factory=dict)

    @property
    def written(self) -> str:
        return "".join(self.pieces)


class CallsInPieces:
    """The calls so far, distinguished by id, name and index, since servers repeat each of these."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []

    def add(self, pieces: Any, legacy: Any = None) -> None:
        """Add the `tool_calls` of a message or of a piece of one, or the older form `function_call`."""
        pieces, before = pieces if isinstance(pieces, list) else [pieces], tuple(self._calls)
        for piece in [*pieces, legacy and {"function": legacy}]:
            if isinstance(piece, Mapping):
                self._add(piece, before)

    def _add(self, piece: Mapping[str, Any], before: Sequence[_Call]) -> None:
        function = piece.get("function")
        function = function if isinstance(function, Mapping) else piece
        id, name = str(piece.get("id") or ""), str(function.get("name") or "")
        written = _as_text(function.get("arguments", function.get("parameters")))
        call = self._continued(piece.get("index"), id, name, written)
        if call is None:
            call = _Call(piece.get("index"), id, name)
            if any(
                (one.index, one.id, one.name, one.written) == (call.index, id, name, written)
                for one in before
            ):
                return  # some servers repeat the whole call at the end
            self._calls.append(call)
        elif name and not call.written and call.name != name:
            call.name += name  # the name may come in pieces, too
        call.id = call.id or id
        call.pieces.append(written)
        call.extra = merged(call.extra, wanted_back(piece))

    def _continued(self, index: Any, id: str, name: str, written: str) -> _Call | None:
        """Return the call that a piece continues; None if it begins one. Only a piece with a name begins a
        call, as some servers give each piece its own id."""
        calls = self._calls
        matching = [one for one in calls if id and one.id == id] or [o for o in calls if o.index == index]
        matching = matching or ([] if name else calls)
        if not matching or not (name and matching[-1].name):
            return matching[-1] if matching else None
        before = matching[-1]
        if index is not None and before.index not in (None, index):
            return None  # another call with an id that was used before
        another_id, same_name = bool(id and before.id and id != before.id), name == before.name
        if _is_object(before.written):
            return before if same_name and not another_id and not written.strip() else None
        goes_on = before.written and same_name and not written.lstrip().startswith("{")
        if another_id and not goes_on:
            return None
        return before if same_name or (not before.written and index is not None) else None

    def made(self) -> Iterator[Json]:
        """Yield each call with its id, name and arguments. Arguments that are several objects become as many
        calls. If each piece repeats the arguments, the last piece counts."""
        for call in self._calls:
            if not call.name:
                continue
            for number, arguments in enumerate(_objects(call)):
                made = {"call_id": "" if number else call.id, "name": call.name, "arguments": arguments}
                yield made | ({"provider_data": call.extra} if call.extra else {})


def _objects(call: _Call) -> list[str]:
    written, pieces = call.written.strip(), [piece for piece in call.pieces if piece.strip()]
    if not written or _is_object(written):
        return [written or "{}"]
    if _is_object(pieces[-1]) and not all(map(_is_object, pieces)):
        return pieces[-1:]
    objects = objects_in(written) if written.startswith("{") else []
    if not objects or objects[-1].end < len(written) or not all(one.whole for one in objects):
        return [written]
    return list(dict.fromkeys(json.dumps(one.value, ensure_ascii=False) for one in objects))


_DECODER = json.JSONDecoder(strict=False)


def _is_object(text: str) -> bool:
    try:
        return isinstance(_DECODER.decode(text), dict)
    except (ValueError, RecursionError):
        return False


def _as_text(arguments: Any) -> str:
    """Return arguments of any type as JSON text. JSON inside a JSON string is unwrapped."""
    if arguments is None:
        return ""
    if not isinstance(arguments, str):
        return json.dumps(arguments, ensure_ascii=False)
    if arguments.startswith('"'):
        try:
            inner = json.loads(arguments)
        except (ValueError, RecursionError):
            return arguments
        return inner if isinstance(inner, str) and _is_object(inner) else arguments
    return arguments


def wanted_back(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return those fields of a message, a piece of one, or a call that must be sent back with it."""
    return {name: value for name, value in fields.items() if value and _WANTED_BACK.search(name)}


def merged(before: Any, piece: Any) -> Any:
    """Return a streamed field with its next piece: texts joined, objects by field, lists by `index`."""
    if isinstance(before, str) and isinstance(piece, str):
        return before + piece
    if isinstance(before, dict) and isinstance(piece, dict):
        joined = {
            name: value if name in _WHOLE or name not in before else merged(before[name], value)
            for name, value in piece.items()
        }
        return {**before, **joined}
    if isinstance(before, list) and isinstance(piece, list):
        return _merged_lists(before, piece)
    return before if piece is None else piece


def _merged_lists(before: list[Any], pieces: list[Any]) -> list[Any]:
    """Return the blocks with the pieces added. A piece continues the last block unless that has a signature,
    another type or another index."""
    result = list(before)
    for piece in pieces:
        last = result[-1] if result else None
        if isinstance(last, dict) and isinstance(piece, dict) and _goes_on(last, piece):
            result[-1] = merged(last, piece)
        else:
            result.append(piece)
    return result


def _goes_on(block: Mapping[str, Any], piece: Mapping[str, Any]) -> bool:
    same = all(block.get(name) == piece.get(name, block.get(name)) for name in ("type", "index"))
    return same and not block.get("signature")


def thoughts_in(fields: Mapping[str, Any]) -> str:
    """Return the text of a model's thoughts, if the server separates them from the answer."""
    texts = (fields.get(name) for name in ("reasoning_content", "reasoning", "thinking"))
    return next((text for text in texts if isinstance(text, str)), "")
