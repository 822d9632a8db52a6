"""One run of the command: its settings, its log, the companion it opens, and how it complains."""

import asyncio
import errno
import functools
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import ExitStack, asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import typer

from agent.errors import FAULTS

if TYPE_CHECKING:
    from agent.companion import Companion
    from agent.settings import Settings
    from agent.tracing.store import Traces


class Session:
    """Made by `main`, at hand in every command as `context.obj`."""

    def __init__(self) -> None:
        self.debug = False
        self.verbose = False
        self._closing = ExitStack()
        self._settings: Settings | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.close()

    def settings(self) -> "Settings":
        """Read once; from then on there is a log. Raises SettingsError."""
        if self._settings is None:
            from agent.settings import Settings
            from agent.surfaces.cli.log import logging_to

            self._settings = Settings.load()
            self._closing.enter_context(logging_to(self._settings, self.verbose))
        return self._settings

    @asynccontextmanager
    async def companion(self, *, upkeep: bool = False) -> "AsyncIterator[Companion]":
        settings = self.settings()
        from agent.companion import Companion

        async with Companion.open(settings, upkeep=upkeep) as pet:
            yield pet

    @asynccontextmanager
    async def traces(self) -> "AsyncIterator[Traces]":
        """The traces alone, for those who look at them: a companion takes longer to open."""
        settings = self.settings()
        from agent.tracing.store import Traces
        from memory.sql.engine import Database

        elsewhere = settings.traces_url is not None
        url = settings.traces_url if elsewhere else settings.database_url
        setting = "HACHI_TRACES_URL" if elsewhere else "DATABASE_URL"
        database = await Database.open(url.get_secret_value() if url else None, settings.home, setting)
        try:
            yield Traces(database)
        finally:
            await database.close()

    def complain(self, error: Exception) -> None:
        """One line on stderr; with --debug the traceback before it. What nobody foresaw is in the log too."""
        if self.debug:
            import traceback

            traceback.print_exception(error, file=sys.stderr)
        if not isinstance(error, (*FAULTS, OSError)):
            import logging

            logging.getLogger("hachi.cli").error("something broke inside", exc_info=error)
        print(f"hachi: {in_one_line(error)}", file=sys.stderr)


def in_one_line(error: Exception) -> str:
    """What to tell a person."""
    text = _text(error)
    trace_id = getattr(error, "trace_id", None)
    return " ".join(f"{text} ({trace_id})".split() if trace_id else text.split())


def _text(error: Exception) -> str:
    if isinstance(error, FAULTS):
        return str(error)
    if isinstance(error, OSError):
        reason = error.strerror or str(error) or type(error).__name__
        if error.errno == errno.ENOSPC:
            reason = "there is no room left to write; make room and run it again"
        return f"{error.filename}: {reason}" if error.filename else reason
    return f"something broke inside: {type(error).__name__}: {error}; run again with `hachi --debug …`"


def running(command: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """An async function as a command."""

    @functools.wraps(command)
    def run(*args: Any, **options: Any) -> None:
        try:
            asyncio.run(command(*args, **options))
        except BrokenPipeError:
            raise typer.Exit(1) from None  # whoever was reading has read enough

    return run


def say(message: str) -> None:
    """A line beside the output: what was decided, what to do next."""
    print(f"hachi: {message}", file=sys.stderr)


def wants(condition: bool, message: str) -> None:
    """Usage that the options alone do not tell is wrong."""
    if not condition:
        raise typer.BadParameter(message)
