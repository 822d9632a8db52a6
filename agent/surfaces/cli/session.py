"""Run one command: read its settings, open its log and resources, and report errors.

A command is an async function with a decorator that opens its first argument: `with_companion`, `with_lists`,
`with_traces` or `with_session`. typer fills in the other arguments. A command that returns an `Output` has
`--json`.
"""

import asyncio
import errno
import inspect
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    ExitStack,
    asynccontextmanager,
    nullcontext,
)
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.errors import HachiError
from agent.surfaces.cli.output import Output
from agent.surfaces.start import collect_garbage
from memory.text import storable

if TYPE_CHECKING:
    from agent.companion import Companion as Companion
    from agent.services.listing import ListService as ListService
    from agent.settings import Settings
    from agent.tracing.store.traces import Traces as Traces
    from memory.sql.engine import Database
else:  # what a command gets; it is loaded when the command runs
    Companion = ListService = Traces = Any

Command = Callable[..., Coroutine[Any, Any, Any]]
Decorator = Callable[[Command], Any]

START_SECONDS = 10.0
"""Seconds after which a command has started, so that garbage is collected."""
NO_ROOM = "there is no room left to write; make room and run it again"
CONTEXT = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
JSON = inspect.Parameter(
    "json",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[bool, typer.Option("--json", help="Print JSON.")],
)


class Session(ExitStack):
    """The resources that a run of a command opens. Created by `main`."""

    debug = verbose = False

    def __init__(self, surface: str) -> None:
        super().__init__()
        self.surface = surface
        """The surface's name in traces."""
        self._settings: Settings | None = None

    def settings(self) -> "Settings":
        """Read the settings and open the log, once. Raises SettingsError."""
        if self._settings is None:
            from agent.settings import Settings
            from agent.surfaces.cli.log import logging_to

            self._settings = Settings.load()
            self.enter_context(logging_to(self._settings, self.verbose))
        return self._settings

    def companion(self, *, periodic_jobs: bool = False) -> "AbstractAsyncContextManager[Companion]":
        settings = self.settings()
        from agent.companion import Companion

        return Companion.open(settings, periodic_jobs=periodic_jobs, surface=self.surface)

    @asynccontextmanager
    async def database(self) -> "AsyncIterator[Database]":
        """Open only the database, which is faster than a companion."""
        settings = self.settings()
        from agent.wiring.home import open_database

        async with AsyncExitStack() as closing:
            yield await open_database(closing, settings)

    @asynccontextmanager
    async def lists(self) -> "AsyncIterator[ListService]":
        async with self.database() as database:
            from agent.services.listing import ListParts, ListService

            yield ListService(ListParts(database, now))

    @asynccontextmanager
    async def traces(self) -> "AsyncIterator[Traces]":
        async with self.database() as database:
            from agent.tracing.store.traces import Traces

            yield Traces(database)

    def report(self, error: Exception) -> None:
        """Print an error in one line on stderr, after the traceback with --debug. The log gets the traceback
        of a bug."""
        if self.debug:
            import traceback

            traceback.print_exception(error, file=sys.stderr)
        if not isinstance(error, (HachiError, OSError)):
            import logging

            logging.getLogger("hachi.cli").error("internal error", exc_info=error)
        print(f"hachi: {error_line(error)}", file=sys.stderr)


def now() -> datetime:
    return datetime.now(UTC)


def database_url(settings: "Settings") -> str | None:
    """Return the URL of the database; None for SQLite in the data folder."""
    return settings.database_url.get_secret_value() if settings.database_url else None


def error_line(error: Exception) -> str:
    if isinstance(error, HachiError):
        text = f"{error} ({error.trace_id})" if error.trace_id else str(error)
    elif isinstance(error, OSError):
        full = error.errno == errno.ENOSPC
        reason = NO_ROOM if full else error.strerror or str(error) or type(error).__name__
        text = f"{error.filename}: {reason}" if error.filename else reason
    else:
        text = f"internal error: {type(error).__name__}: {error}; run again with `hachi --debug …`"
    return " ".join(text.split())


def _command_with(open_resource: Callable[[Session], AbstractAsyncContextManager[Any]]) -> Decorator:
    """Return a decorator that makes a typer command of an async function."""

    def decorate(command: Command) -> Any:
        signature = inspect.signature(command)
        has_json = signature.return_annotation is Output

        async def execute(session: Session, options: dict[str, Any]) -> Any:
            asyncio.get_running_loop().call_later(START_SECONDS, collect_garbage)
            async with open_resource(session) as resource:
                return await command(resource, **options)

        def run(context: typer.Context, **options: Any) -> None:
            json = has_json and options.pop("json")
            try:
                output = asyncio.run(execute(context.obj, storable_all(options)))
                if output is not None:
                    output.print(json)
            except BrokenPipeError:
                raise typer.Exit(1) from None  # the reader closed the pipe

        _, *options = signature.parameters.values()
        return with_parameters(run, command, [CONTEXT, *options, *([JSON] if has_json else [])])

    return decorate


def takes(read: Callable[..., Any], *left_out: str) -> Callable[[Command], Command]:
    """Add the options of `read` to a command, except `left_out`. The command's second argument is what `read`
    makes of them."""
    offered = dict(inspect.signature(read).parameters)
    for name in left_out:
        del offered[name]

    def decorate(command: Command) -> Command:
        def run(resource: Any, **options: Any) -> Any:
            given = {name: options.pop(name) for name in offered}
            return command(resource, read(**given), **options)

        resource, _, *others = inspect.signature(command).parameters.values()
        options = sorted([*offered.values(), *others], key=lambda one: one.default is not one.empty)
        found: Command = with_parameters(run, command, [resource, *options])
        return found

    return decorate


def with_parameters(run: Any, command: Command, parameters: list[inspect.Parameter]) -> Any:
    """Give `run` the command's name, docstring and these parameters, which typer reads."""
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    run.__signature__ = inspect.signature(command).replace(parameters=parameters)
    return run


def storable_all(value: Any) -> Any:
    """Return options, or JSON, without the surrogates that stand for undecodable bytes."""
    if isinstance(value, dict):
        return {storable(name): storable_all(item) for name, item in value.items()}
    if isinstance(value, list):
        return [storable_all(item) for item in value]
    return storable(value) if isinstance(value, str) else value


with_session = _command_with(nullcontext)
with_companion = _command_with(Session.companion)
with_traces = _command_with(Session.traces)
with_lists = _command_with(Session.lists)


def require(condition: bool, message: str) -> None:
    """Exit with 2 if the condition is false, for wrong usage that typer cannot detect."""
    if not condition:
        raise typer.BadParameter(message)
