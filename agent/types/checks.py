"""Checks the arguments of the API's methods against their annotations, before they run."""

import functools
import inspect
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from reprlib import repr as shown
from typing import Any, TypeVar, Union, get_args, get_origin

from agent.errors import BadInput
from agent.types.arguments import MOST_LISTED, Limit, MemoryId, Subjects
from memory.text import storable

T = TypeVar("T")

FIRST_YEAR, LAST_YEAR = 1000, 9000
"""Of a time. Databases and calendars disagree about what lies outside, and a lifetime may be added to it."""


def checks_arguments(service: type[T]) -> type[T]:
    """Have the async methods of a service raise BadInput for what their annotations do not allow: no text, no
    list, a limit below 1, a time without a zone, another record. An argument with a type of its own in
    `agent.types.arguments`, and the user, is left to the reading of that."""
    for name, method in list(vars(service).items()):
        if inspect.iscoroutinefunction(method) and not name.startswith("_"):
            setattr(service, name, _checking(method))
    return service


def _checking(method: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(method)
    checks = [
        (name, check, type(None) in get_args(parameter.annotation))
        for name, parameter in signature.parameters.items()
        if name != "user" and (check := _check_of(parameter.annotation))
    ]

    @functools.wraps(method)
    async def checked_call(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        for name, check, optional in checks:
            if name in given and not (optional and given[name] is None):
                check(name, given[name])
        return await method(*args, **kwargs)

    return checked_call


def _check_of(annotation: Any) -> Callable[[str, Any], None] | None:
    union = get_origin(annotation) in (Union, types.UnionType)
    kinds = {part for part in (get_args(annotation) if union else [annotation]) if part is not type(None)}
    if kinds <= {str, MemoryId}:
        return require_text
    if kinds == {Limit}:
        return lambda name, value: _named(name, lambda: limit_of(value))
    if kinds == {datetime}:
        return lambda name, value: _named(name, lambda: moment_of(value))
    if kinds == {bool}:
        return lambda name, value: _named(name, lambda: switch(value))
    origins = {get_origin(kind) for kind in kinds}
    if Subjects not in kinds and origins <= {Sequence, Iterable}:
        return require_list
    if origins == {Callable}:
        return lambda name, value: _require(callable(value), name, value, "no function")
    [kind, *others] = kinds
    if others or not isinstance(kind, type) or kind.__module__.split(".")[0] not in ("agent", "memory"):
        return None
    return lambda name, value: _require(isinstance(value, kind), name, value, f"no {kind.__name__}")


def _require(fits: bool, name: str, value: object, what: str) -> None:
    if not fits:
        raise BadInput(f"{name}: {shown(value)} is {what}")


def _named(name: str, read: Callable[[], object]) -> None:
    try:
        read()
    except BadInput as error:
        raise BadInput(f"{name}: {str(error).removeprefix(f'{name}: ')}") from None


def require_text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise BadInput(f"{name}: {shown(value)} is no text")
    if storable(value) != value and "\x00" not in value:
        raise BadInput(f"{name}: {shown(value)} holds half a character, which is no text")


def require_list(name: str, value: object) -> None:
    if not isinstance(value, Iterable) or isinstance(value, str | bytes | Mapping):
        raise BadInput(f"{name}: {shown(value)} is no list")


def moment_of(value: object) -> datetime:
    """Return an aware time in UTC, from one or from ISO 8601. Raises BadInput."""
    example = "such as 2026-01-10T09:30:00+00:00"
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        moment = None
    if not isinstance(moment, datetime):
        raise BadInput(f"{shown(value)} is no ISO 8601 time, {example}")
    if moment.tzinfo is None:
        raise BadInput(f"{str(value)!r} needs a time zone, {example}")
    if not FIRST_YEAR <= moment.year <= LAST_YEAR:
        raise BadInput(f"{str(value)!r} is not between the years {FIRST_YEAR} and {LAST_YEAR}")
    return moment.astimezone(UTC)


def limit_of(value: object, most: int = MOST_LISTED, name: str = "limit") -> int:
    """Raises BadInput that names the argument."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise BadInput(f"{name}: {shown(value)} is no whole number from 1 to {most}")
    return value


def switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise BadInput(f"{shown(value)} is neither True nor False")
    return value
