"""`hachi chat`: a conversation at a terminal (`terminal.py`), otherwise one message a line."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.surfaces.cli.chat.stdin import stdin_lines
from agent.surfaces.cli.chat.turn import announce_offline, print_turn
from agent.surfaces.cli.options import PlaceName, User, clean
from agent.surfaces.cli.output import interactive, json_line, plain
from agent.surfaces.cli.session import Session, async_command
from agent.surfaces.records_json import decision_json

if TYPE_CHECKING:
    from agent.companion import Companion
    from agent.types import Reply

SETTLE_TIMEOUT = 5.0
"""Seconds that the background work of a turn may delay the next line. The rest goes on beside it, or at the
next start."""


@async_command
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
    session.settings().chosen_model  # noqa: B018 - raises before anything is typed
    at_terminal = not json and sys.stdout.isatty()
    async with session.companion(upkeep=message is None) as pet:
        if at_terminal and message is None and interactive():
            from agent.surfaces.cli.chat.terminal import converse

            await converse(pet, session, user, place)
            return
        turns = _Turns(pet, session, user, place, json)
        if message is not None:
            await turns.take(message, streamed=at_terminal)
        else:
            async for line in stdin_lines():
                if line.strip():
                    await turns.take(line)
    if turns.failed:
        raise typer.Exit(1)


class _Turns:
    """One turn after the other, each with its background work."""

    def __init__(self, pet: "Companion", session: Session, user: str, place: str, json: bool) -> None:
        self._pet = pet
        self._session = session
        self._user = user
        self._place = place
        self._json = json
        self._timeout = SETTLE_TIMEOUT + (session.settings().model_timeout if json else 0)
        self._announced = False
        self.failed = False

    async def take(self, text: str, *, streamed: bool = False) -> None:
        """An error is reported and sets `failed`; the next turn may succeed."""
        if not self._announced:
            self._announced = True
            announce_offline(self._pet)
        try:
            if streamed:
                await print_turn(self._pet, text, self._user, self._place)
            else:
                reply = await self._pet.respond(text, user=self._user, place=self._place, settle=self._json)
                print(json_line(_reply_json(reply)) if self._json else plain(reply.message), flush=True)
            await self._pet.settle(self._timeout)
        except BrokenPipeError:
            await self._pet.settle(SETTLE_TIMEOUT)  # nobody reads any more, but the turn is kept
            raise
        except Exception as error:
            self.failed = True
            self._session.report(error)


def _reply_json(reply: "Reply") -> dict[str, Any]:
    return {
        "message": reply.message,
        "memories": [decision_json(decision) for decision in reply.memories],
        "tools": [{"name": tool.name, "arguments": tool.arguments, "ok": tool.ok} for tool in reply.tools],
        "trace_id": reply.trace_id,
        "model": reply.model,
    }
