"""`hachi chat`: a conversation at a terminal (`terminal.py`), otherwise one message a line."""

import sys
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.surfaces.cli.chat.forget import NOTHING, forget_commands
from agent.surfaces.cli.chat.stdin import stdin_lines
from agent.surfaces.cli.chat.turn import announce_offline, print_turn
from agent.surfaces.cli.options import PlaceName, User
from agent.surfaces.cli.output import interactive, plain
from agent.surfaces.cli.session import Session, with_session
from agent.surfaces.records_json import decision_json
from agent.tracing.render.text import json_text

if TYPE_CHECKING:
    from agent.companion import Companion
    from agent.types import Reply

SETTLE_TIMEOUT = 5.0
"""Seconds that the background work of a turn may delay the next line. What is left goes on beside it, or at
the next start."""


@with_session
async def chat(
    session: Session,
    user: User,
    place: PlaceName = "dm",
    message: Annotated[
        str | None, typer.Option("-m", "--message", metavar="TEXT", help="Say this and end.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object a turn.")] = False,
) -> None:
    """Talk with Hachi. Input that is no terminal is read one message a line."""
    session.settings().chosen_model  # noqa: B018 - raises before anything is typed
    at_terminal = not json and sys.stdout.isatty()
    done = True
    async with session.companion(upkeep=message is None) as pet:
        announce_offline(pet)
        if at_terminal and message is None and interactive():
            from agent.surfaces.cli.chat.terminal import converse

            await converse(pet, session, user, place)
            return
        async for line in _messages(message):
            try:
                await _turn(pet, line, user, place, json=json, streamed=at_terminal and message is not None)
            except BrokenPipeError:
                await pet.settle(SETTLE_TIMEOUT)  # nobody reads any more, but the turn is kept
                raise
            except Exception as error:  # the next turn may succeed
                done = False
                session.report(error)
    if not done:
        raise typer.Exit(1)


async def _messages(message: str | None) -> AsyncIterator[str]:
    """The message of the option, or else the lines of stdin."""
    if message is not None:
        yield message
        return
    async for line in stdin_lines():
        if line.strip():
            yield line


async def _turn(pet: "Companion", text: str, user: str, place: str, *, json: bool, streamed: bool) -> None:
    """Take one turn with its background work, and print the reply."""
    if streamed:
        reply = await print_turn(pet, text, user, place)
    else:
        reply = await pet.respond(text, user=user, place=place, settle=json)
        print(json_text(_reply_json(reply)) if json else plain(reply.message), flush=True)
    if reply.forget is not None and not json:
        print(*(forget_commands(reply.forget) or [NOTHING]), sep="\n", flush=True)
    await pet.settle(SETTLE_TIMEOUT + (pet.settings.model_timeout if json else 0))


def _reply_json(reply: "Reply") -> dict[str, Any]:
    return {
        "message": reply.message,
        "memories": [decision_json(decision) for decision in reply.memories],
        "tools": [{"name": tool.name, "arguments": tool.arguments, "ok": tool.ok} for tool in reply.tools],
        "trace_id": reply.trace_id,
        "model": reply.model,
    } | ({"forget": [asdict(candidate) for candidate in reply.forget]} if reply.forget is not None else {})
