"""One run of the command: its settings, its log, what it opens, and how it reports errors."""

import asyncio
import errno
import functools
import inspect
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, Concatenate, TypeVar

import typer

from agent.errors import FAULTS

if TYPE_CHECKING:
    from agent.companion import Companion
    from agent.settings import Settings
    from agent.tracing.store import Traces

T = TypeVar("T")


class Session(ExitStack):
    """Made by `main`; every command has it as `context.obj`."""

    def __init__(self) -> None:
        super().__init__()
        self.debug = False
        self.verbose = False
        self._settings: Settings | None = None

    def settings(self) -> "Settings":
        """Read once; from then on there is a log. Raises SettingsError."""
        if self._settings is None:
            from agent.settings import Settings
            from agent.surfaces.cli.log import logging_to

            self._settings = Settings.load()
            self.enter_context(logging_to(self._settings, self.verbose))
        return self._settings

    @asynccontextmanager
    async def companion(self, *, upkeep: bool = False) -> "AsyncIterator[Companion]":
        settings = self.settings()
        from agent.companion import Companion

        async with Companion.open(settings, upkeep=upkeep) as pet:
            yield pet

    @asynccontextmanager
    async def traces(self) -> "AsyncIterator[Traces]":
        """The traces alone, which open faster than a companion."""
        settings = self.settings()
        from agent.tracing.store import Traces
        from memory.sql.engine import Database

        own = settings.traces_url is not None
        url = settings.traces_url if own else settings.database_url
        name = "HACHI_TRACES_URL" if own else "DATABASE_URL"
        database = await Database.open(url.get_secret_value() if url else None, settings.home, name)
        try:
            yield Traces(database)
        finally:
            await database.close()

    def report(self, error: Exception) -> None:
        """One line on stderr; with --debug after the traceback. The log has the traceback of a bug."""
        if self.debug:
            import traceback

            traceback.print_exception(error, file=sys.stderr)
        if not isinstance(error, (*FAULTS, OSError)):
            import logging

            logging.getLogger("hachi.cli").error("something broke inside", exc_info=error)
        print(f"hachi: {error_line(error)}", file=sys.stderr)


def error_line(error: Exception) -> str:
    trace_id = getattr(error, "trace_id", None)
    text = f"{_text(error)} ({trace_id})" if trace_id else _text(error)
    return " ".join(text.split())


def _text(error: Exception) -> str:
    if isinstance(error, FAULTS):
        return str(error)
    if isinstance(error, OSError):
        reason = error.strerror or str(error) or type(error).__name__
        if error.errno == errno.ENOSPC:
            reason = "there is no room left to write; make room and run it again"
        return f"{error.filename}: {reason}" if error.filename else reason
    return f"something broke inside: {type(error).__name__}: {error}; run again with `hachi --debug …`"


def async_command(command: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """An async function as a command."""

    @functools.wraps(command)
    def run(*args: Any, **options: Any) -> None:
        try:
            asyncio.run(command(*args, **options))
        except BrokenPipeError:
            raise typer.Exit(1) from None  # whoever was reading has read enough

    return run


def with_companion(
    command: Callable[Concatenate["Companion", ...], Coroutine[Any, Any, None]],
) -> Callable[..., None]:
    """An async function as a command; its first argument is an open companion."""
    return _opening(Session.companion, command)


def with_traces(
    command: Callable[Concatenate["Traces", ...], Coroutine[Any, Any, None]],
) -> Callable[..., None]:
    """An async function as a command; its first argument is the store of traces."""
    return _opening(Session.traces, command)


def _opening(
    open_resource: Callable[[Session], AbstractAsyncContextManager[T]],
    command: Callable[Concatenate[T, ...], Coroutine[Any, Any, None]],
) -> Callable[..., None]:
    async def run(context: typer.Context, **options: Any) -> None:
        async with open_resource(context.obj) as resource:
            await command(resource, **options)

    # Typer reads the options from the signature: the command's, with the context for the resource.
    _, *options = inspect.signature(command).parameters.values()
    context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__annotations__ = {one.name: one.annotation for one in (context, *options)}
    run.__signature__ = inspect.Signature([context, *options])  # type: ignore[attr-defined]
    return async_command(run)


def require(condition: bool, message: str) -> None:
    """For wrong usage that the options alone do not show. Exits with 2."""
    if not condition:
        raise typer.BadParameter(message)
