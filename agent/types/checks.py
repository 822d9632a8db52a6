"""Reads the arguments of the API's methods by their annotations, before they run."""

import functools
import inspect
import types
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin

from typing_extensions import Unpack

from agent.errors import BadInput
from agent.types.arguments import Argument, Read, each, moment_of, one_of, refuse, short_text

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def checks_arguments(service: type[T]) -> type[T]:
    """Have the public methods of a class raise BadInput for what their annotations do not allow, and for
    arguments that do not exist or are missing; they get what their arguments' types read of the rest. Where
    the class has a `recorder`, a call for a user leaves a trace with what was passed and what went wrong."""
    for name, method in list(vars(service).items()):
        if name.startswith("_"):
            continue
        if inspect.isfunction(method):
            setattr(service, name, reads_arguments(method))
        elif isinstance(method, classmethod) and inspect.iscoroutinefunction(method.__func__):
            setattr(service, name, classmethod(reads_arguments(method.__func__)))
    return service


def checks_fields(shape: type[T]) -> type[T]:
    """Have a dataclass of the API read its fields when it is made, as a method reads its arguments."""
    shape.__init__ = reads_arguments(shape.__init__)  # type: ignore[method-assign]
    return shape


def read_fields(shape: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a TypedDict, each as it is read. Raises BadInput."""
    readers = _fields(shape)
    for name in given.keys() - readers.keys():
        raise BadInput(f"{name}: there is no such argument; there are {', '.join(readers)}")
    return {name: readers[name](name, value) for name, value in given.items()}


def reads_arguments(method: F) -> F:
    """The same for one function."""
    signature = inspect.signature(method)
    readers = {name: read_of(one.annotation) for name, one in signature.parameters.items()}

    def read(args: Sequence[Any], kwargs: Mapping[str, Any]) -> inspect.BoundArguments:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise BadInput(f"{method.__name__}: {error}") from None
        for name, value in bound.arguments.items():
            bound.arguments[name] = readers[name](name, value)
        return bound

    if not inspect.iscoroutinefunction(method):

        @functools.wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            bound = read(args, kwargs)
            return method(*bound.args, **bound.kwargs)

        return cast(F, call)

    @functools.wraps(method)
    async def awaited_call(*args: Any, **kwargs: Any) -> Any:
        recorder = getattr(args[0], "recorder", None) if args and "user" in kwargs else None
        with recorder.call(method.__name__, kwargs) if recorder else nullcontext(ignore) as told:
            bound = read(args, kwargs)
            result = await method(*bound.args, **bound.kwargs)
            told(result, bound.arguments)
            return result

    return cast(F, awaited_call)


def ignore(*_: object) -> None:
    """Nothing is recorded of the call."""


@functools.cache
def _fields(shape: type) -> dict[str, Read]:
    return {name: read_of(one) for name, one in shape.__annotations__.items()}


def read_of(annotation: Any) -> Read:
    """How a value of this type is read. What it does not know, as a type variable, it lets pass."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return next((one.read for one in parts if isinstance(one, Argument)), read_of(parts[0]))
    if origin is Unpack:
        return lambda name, value: read_fields(parts[0], value)
    if origin in (Union, types.UnionType):
        return _union(parts)
    if origin is Literal:
        return one_of(*parts)
    if origin is tuple:
        return _tuple([read_of(part) for part in parts])
    if origin in (Sequence, Collection, Iterable, list):
        return each(read_of(parts[0]))
    if origin is Mapping:
        return _mapping
    if origin is Callable:
        return _async_function if get_origin(parts[-1]) is Awaitable else _instance(Callable, "no function")
    if origin is type:
        return _instance(type, "no type")
    if known := _KNOWN.get(annotation):
        return known
    if isinstance(annotation, type):
        return _instance(annotation, f"no {annotation.__name__}")
    return _any


def _any(name: str, value: Any) -> Any:
    return value


def _union(parts: Sequence[Any]) -> Read:
    kinds = [part for part in parts if part is not type(None)]
    read = read_of(kinds[0])
    if len(kinds) > 1:
        classes = tuple(get_origin(kind) or kind for kind in kinds)
        read = _instance(classes, f"no {' or '.join(one.__name__ for one in classes)}")
    if len(kinds) == len(parts):
        return read
    return lambda name, value: None if value is None else read(name, value)


def _instance(kind: Any, what: str) -> Read:
    def read(name: str, value: object) -> object:
        if not isinstance(value, kind):
            raise refuse(name, value, what)
        return value

    return read


def _async_function(name: str, value: object) -> object:
    if not any(inspect.iscoroutinefunction(one) for one in (value, type(value).__call__)):
        raise refuse(name, value, "no async function")
    return value


def _tuple(items: Sequence[Read]) -> Read:
    def read(name: str, value: object) -> tuple[Any, ...]:
        if not isinstance(value, tuple) or len(value) != len(items):
            raise refuse(name, value, f"no tuple of {len(items)}")
        return tuple(item(name, one) for item, one in zip(items, value, strict=True))

    return read


def _mapping(name: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise refuse(name, value, "no mapping of names to values")
    return value


def _switch(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise refuse(name, value, "neither True nor False")
    return value


_KNOWN: dict[Any, Read] = {
    str: short_text,
    bool: _switch,
    datetime: moment_of,
    Any: _any,
    inspect.Parameter.empty: _any,
}
