"""Reads the arguments of the API's methods by their annotations, with pydantic, before they run.

A bad value raises BadInput, which names the argument and says what to pass instead.
"""

import functools
import inspect
import types
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from datetime import datetime
from typing import Annotated, Any, Optional, TypeVar, Union, cast, get_args, get_origin

from typing_extensions import Unpack

from agent.errors import BadInput
from agent.types.arguments import Argument, Instant, Refused, Word, listed

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
Read = Callable[[str, Any], Any]
"""Given the name of an argument and what was passed, returns its value."""


def checks_arguments(service: type[T]) -> type[T]:
    """Have the public methods of a class raise BadInput for what their annotations do not allow, and for
    arguments that do not exist or are missing; they get what their arguments' types read of the rest. Where
    `parts` have a recorder, a call for a user leaves a trace of what was passed, or went wrong."""
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


def reads_arguments(method: F) -> F:
    """The same for one function."""
    signature = inspect.signature(method)
    kinds = {name: one.annotation for name, one in signature.parameters.items()}
    readers: dict[str, Read] = {}

    def read(args: Sequence[Any], kwargs: Mapping[str, Any]) -> inspect.BoundArguments:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise BadInput(f"{method.__name__}: {error}") from None
        for name, value in bound.arguments.items():
            reader = readers.get(name) or readers.setdefault(name, reader_of(kinds[name]))
            bound.arguments[name] = reader(name, value)
        return bound

    if not inspect.iscoroutinefunction(method):

        @functools.wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            bound = read(args, kwargs)
            return method(*bound.args, **bound.kwargs)

        return cast(F, call)

    @functools.wraps(method)
    async def awaited_call(*args: Any, **kwargs: Any) -> Any:
        parts = getattr(args[0], "parts", None) if args and "user" in kwargs else None
        recorder = getattr(parts, "recorder", None)
        with recorder.call(method.__name__, kwargs) if recorder else nullcontext(ignore) as told:
            bound = read(args, kwargs)
            result = await method(*bound.args, **bound.kwargs)
            told(result, bound.arguments)
            return result

    return cast(F, awaited_call)


def ignore(*_: object) -> None:
    """Nothing is recorded of the call."""


def read_fields(shape: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a TypedDict, each as it is read. Raises BadInput."""
    readers = _fields(shape)
    for name in given.keys() - readers.keys():
        raise BadInput(f"{name}: there is no such argument; there are {', '.join(readers)}")
    return {name: readers[name](name, value) for name, value in given.items()}


@functools.cache
def _fields(shape: type) -> dict[str, Read]:
    return {name: reader_of(one) for name, one in shape.__annotations__.items()}


def reader_of(annotation: Any) -> Read:
    """Return what reads a value of this type, strictly. It raises BadInput."""
    if get_origin(annotation) is Unpack:
        return lambda _, value: read_fields(get_args(annotation)[0], value)
    from pydantic import ConfigDict, TypeAdapter, ValidationError

    config = ConfigDict(strict=True, arbitrary_types_allowed=True)
    validate = TypeAdapter(_readable(annotation), config=config).validator.validate_python

    def read(name: str, value: object) -> Any:
        try:
            return validate(value)
        except ValidationError as error:
            raise BadInput(line_of(name, error.errors(include_url=False)[0])) from None

    return read


_WHAT = {
    "bool_type": "neither True nor False",
    "bytes_type": "no text",
    "callable_type": "no function",
    "is_type": "no type",
    "mapping_type": "no mapping of names to values",
    "dict_type": "no mapping of names to values",
}


def line_of(name: str, fault: Mapping[str, Any]) -> str:
    """Return one line on an error of pydantic's, which names the argument and says what to pass."""
    kind, context = fault["type"], fault.get("ctx", {})
    if kind == "value_error":
        return f"{name}: {context['error']}"
    if kind == "extra_forbidden":
        return f"{name}: there is no such argument; leave it out"
    if kind == "literal_error":
        what = f"not one of {context['expected'].replace(' or ', ', ')}"
    else:
        what = _WHAT.get(kind, "")
    if what:
        return f"{name}: {Refused(fault['input'], what)}"
    return f"{name}: {fault['msg'][0].lower()}{fault['msg'][1:]}"


def _readable(annotation: Any) -> Any:
    """Return the type as pydantic reads it: a plain text or time as ours, an object of a class as it is."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if annotation in (str, datetime):
        return Word if annotation is str else Instant
    if origin in (Union, types.UnionType):
        kinds = [part for part in parts if part is not types.NoneType]
        several = tuple(get_origin(kind) or kind for kind in kinds) if len(kinds) > 1 else ()
        kind = Annotated[Any, Argument(functools.partial(_instance, several))] if several else kinds[0]
        return Optional[_readable(kind)] if len(kinds) < len(parts) else kind  # noqa: UP045 - may be of any kind
    if origin in (Sequence, Collection, Iterable, list):
        return Annotated[list[_readable(parts[0])], _before(listed)]  # type: ignore[misc]
    if origin is Callable and get_origin(parts[-1]) is Awaitable:
        return Annotated[Any, Argument(_async_function)]
    if origin is Annotated:  # its type may be one that is not imported here
        return Annotated[Any, *annotation.__metadata__]
    if annotation in (Any, inspect.Parameter.empty) or isinstance(annotation, str | TypeVar):
        return Any
    if isinstance(annotation, type) and annotation not in (bool, int, float, bytes, object, types.NoneType):
        return Annotated[Any, Argument(functools.partial(_instance, (annotation,)))]
    return annotation


def _before(read: Callable[[Any], Any]) -> Any:
    from pydantic import BeforeValidator

    return BeforeValidator(read)


def _instance(kinds: tuple[type, ...], value: object) -> object:
    if not isinstance(value, kinds):
        raise Refused(value, f"no {' or '.join(kind.__name__ for kind in kinds)}")
    return value


def _async_function(value: object) -> object:
    if not any(inspect.iscoroutinefunction(one) for one in (value, type(value).__call__)):
        raise Refused(value, "no async function")
    return value
