"""Checks the arguments of the API's methods by their annotations, with pydantic's `validate_call`.

An invalid value raises BadInput, which names the argument and says what to pass.
"""

import functools
import inspect
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any, TypeVar, cast

from pydantic import ConfigDict, ValidationError, validate_call

from agent.errors import BadInput
from agent.types.arguments import InvalidValue

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

_CONFIG = ConfigDict(strict=True, arbitrary_types_allowed=True, extra="forbid", defer_build=True)


def checks_arguments(service: type[T]) -> type[T]:
    """Check the arguments of a class's public methods. If its `parts` have a recorder, a call for a user is
    traced with its arguments, and with an error if there is one."""
    for name, method in list(vars(service).items()):
        if name.startswith("_"):
            continue
        if inspect.isfunction(method):
            setattr(service, name, checks_call(method))
        elif isinstance(method, classmethod) and inspect.iscoroutinefunction(method.__func__):
            setattr(service, name, classmethod(checks_call(method.__func__)))
    return service


def checks_fields(shape: type[T]) -> type[T]:
    """Check the fields of a dataclass of the API when it is created."""
    shape.__init__ = checks_call(shape.__init__)  # type: ignore[method-assign]
    return shape


def checks_call(method: F) -> F:
    """Check the arguments of one function before it runs. The function receives the parsed values."""
    names = [*inspect.signature(method).parameters]

    @validate_call(config=_CONFIG)
    @functools.wraps(method)
    def validated(*args: Any, **kwargs: Any) -> Any:
        return args, kwargs

    def read(args: Any, kwargs: Any) -> Any:
        try:
            return validated(*args, **kwargs)
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            raise BadInput(line_of(_path(names, fault), fault)) from None

    if not inspect.iscoroutinefunction(method):

        @functools.wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            args, kwargs = read(args, kwargs)
            return method(*args, **kwargs)

        return cast(F, call)

    @functools.wraps(method)
    async def awaited_call(*args: Any, **kwargs: Any) -> Any:
        parts = getattr(args[0], "parts", None) if args and "user" in kwargs else None
        recorder = getattr(parts, "recorder", None)
        passed = dict(zip(names, args, strict=False)) | kwargs
        with recorder.call(method.__name__, passed) if recorder else nullcontext() as returned:
            args, kwargs = read(args, kwargs)
            result = await method(*args, **kwargs)
            if returned:
                returned(result)
            return result

    return cast(F, awaited_call)


def _path(names: list[str], fault: Mapping[str, Any]) -> str:
    """Return the argument's name, and the position inside a list. For a union, pydantic's location also names
    the type that it tried; this is left out."""
    first, *rest = fault["loc"] or ("arguments",)
    name = names[first] if isinstance(first, int) and first < len(names) else str(first)
    return ".".join([name, *map(str, rest)]) if rest and isinstance(rest[0], int) else name


_WHAT = {
    "bool_type": "neither True nor False",
    "bytes_type": "not text",
    "callable_type": "not a function",
    "is_subclass_of": "not a type",
    "is_type": "not a type",
    "mapping_type": "not a mapping of names to values",
    "dict_type": "not a mapping of names to values",
}
_NO_SUCH = ("extra_forbidden", "unexpected_keyword_argument", "unexpected_positional_argument")


def line_of(name: str, fault: Mapping[str, Any]) -> str:
    """Describe a pydantic error in one line that names the argument and what to pass."""
    kind, context = fault["type"], fault.get("ctx", {})
    if kind == "value_error":
        return f"{name}: {context['error']}"
    if kind in _NO_SUCH:
        return f"{name}: there is no such argument; leave it out"
    if kind.startswith("missing"):
        return f"{name}: it is missing"
    if kind == "literal_error":
        what = f"not one of {context['expected'].replace(' or ', ', ')}"
    elif shape := context.get("class") or context.get("class_name"):
        what = f"not a {shape}"
    else:
        what = _WHAT.get(kind, "")
    if what:
        return f"{name}: {InvalidValue(fault['input'], what)}"
    return f"{name}: {fault['msg'][0].lower()}{fault['msg'][1:]}"
