"""`hachi chat`: at a terminal a conversation (`terminal.py`), else one message a line."""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.surfaces.cli.chat.turn import announce, show_turn
from agent.surfaces.cli.options import PlaceName, User, clean
from agent.surfaces.cli.output import decision_json, json_line, plain
from agent.surfaces.cli.session import Session, running

if TYPE_CHECKING:
    from agent.companion import Companion
    from agent.types import Reply


PATIENCE = 5.0
"""Seconds that a turn's after-turn work may keep the next line waiting; what takes longer is done beside it,
or at the next start."""


@running
async def chat(
    context: typer.Context,
    user: User,
    place: PlaceName = "dm",
    message: Annotated[
        str | None, typer.Option("-m", "--message", parser=clean, metavar="TEXT", help="Say this and end.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a turn.")] = False,
) -> None:
    """Talk with Hachi. Input that is no terminal is read one message a line."""
    session: Session = context.obj
    session.settings().chosen_model  # noqa: B018 - a model nobody named is better said before anything is typed
    at_terminal = not json and sys.stdout.isatty()
    async with session.companion(upkeep=message is None) as pet:
        if at_terminal and message is None and sys.stdin is not None and sys.stdin.isatty():
            from agent.surfaces.cli.chat.terminal import converse

            await converse(pet, session, user, place)
            return
        talk = _Talk(pet, session, user, place, json)
        if message is not None:
            await talk.turn(message, show=at_terminal)
        else:
            async for line in typed_lines():
                if line.strip():
                    await talk.turn(line)
    if talk.failed:
        raise typer.Exit(1)


class _Talk:
    """Turns without a person at the terminal: one after the other, each with its after-turn work."""

    def __init__(self, pet: "Companion", session: Session, user: str, place: str, json: bool) -> None:
        self._pet = pet
        self._session = session
        self._user = user
        self._place = place
        self._json = json
        self._patience = session.settings().model_timeout + PATIENCE if json else PATIENCE
        self._announced = False
        self.failed = False

    async def turn(self, text: str, *, show: bool = False) -> None:
        """One turn. A fault is told and remembered in `failed`; the next turn may go well."""
        if not self._announced:
            self._announced = True
            announce(self._pet)
        try:
            if show:
                await show_turn(self._pet, text, self._user, self._place)
            else:
                reply = await self._pet.respond(text, user=self._user, place=self._place, settle=self._json)
                self._print(reply)
            await self._pet.settle(self._patience)
        except BrokenPipeError:
            await self._pet.settle(PATIENCE)  # nobody reads any more; what was said is kept all the same
            raise
        except Exception as error:
            self.failed = True
            self._session.complain(error)

    def _print(self, reply: "Reply") -> None:
        print(json_line(reply_json(reply)) if self._json else plain(reply.message), flush=True)


def reply_json(reply: "Reply") -> dict[str, Any]:
    return {
        "message": reply.message,
        "memories": [decision_json(decision) for decision in reply.memories],
        "tools": [{"name": tool.name, "arguments": tool.arguments, "ok": tool.ok} for tool in reply.tools],
        "trace_id": reply.trace_id,
        "model": reply.model,
    }


async def typed_lines() -> AsyncIterator[str]:
    """The lines of stdin as they come. Each is waited for in a thread that does not keep the program from
    ending: a pipe may stay silent for ever."""
    loop, lines = asyncio.get_running_loop(), _lines()
    while True:
        line: asyncio.Future[str | None] = loop.create_future()
        threading.Thread(target=_fetch, args=(lines, loop, line), daemon=True).start()
        if (text := await line) is None:
            return
        yield text


def _fetch(lines: Iterator[str], loop: asyncio.AbstractEventLoop, line: "asyncio.Future[str | None]") -> None:
    def deliver(text: str | None, fault: OSError | None) -> None:
        if line.cancelled():
            return
        if fault is not None:
            line.set_exception(fault)
        else:
            line.set_result(text)

    try:
        found: tuple[str | None, OSError | None] = next(lines, None), None
    except OSError as error:
        found = None, error
    with suppress(RuntimeError):  # the loop has ended while we waited
        loop.call_soon_threadsafe(deliver, *found)


def _lines() -> Iterator[str]:
    """Read below Python's own buffering, whose lock would be missed by a program that ends meanwhile."""
    if sys.stdin is None:
        return
    source = getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)
    rest = b""
    while piece := source.read(65_536):
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line.decode("utf-8", "replace")
    if rest:
        yield rest.decode("utf-8", "replace")
