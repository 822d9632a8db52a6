"""`hachi chat`: talk at a terminal (`terminal.py`), or read one message a line from stdin."""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.surfaces.cli.chat.conversation import Conversation, ends
from agent.surfaces.cli.options import PlaceName, User
from agent.surfaces.cli.output import interactive, plain
from agent.surfaces.cli.session import Session, with_session
from agent.tracing.render.text import json_text
from agent.types.records_json import decision_json, forgotten_json

if TYPE_CHECKING:
    from agent.types import Reply

ANNOUNCEMENT = (
    "No language model is configured: this is Hachi's small rule-based stand-in. "
    "Run `hachi setup` for a real one."
)
SETTLE_TIMEOUT = 5.0
"""Maximum seconds that the next line waits for the background work of a turn. Unfinished work goes on
meanwhile, or at the next start."""


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
    """Talk with Hachi. Input that is no terminal is read one message or command a line, such as /memories. If
    Hachi asks what to forget, the next line may answer: y, n, or numbers of the list."""
    session.settings().chosen_model  # noqa: B018 - raises before anything is typed
    at_terminal = not json and sys.stdout.isatty()
    done = True
    async with session.companion(periodic_jobs=message is None) as pet:
        if pet.settings.offline:
            print(ANNOUNCEMENT, file=sys.stderr)
        if at_terminal and message is None and interactive():
            from agent.surfaces.cli.chat.terminal import converse

            await converse(pet, session, user, place)
            return

        async def turn(text: str) -> "Reply":
            confirm = None if json or message is not None else talk.propose  # a next line can be the answer
            if at_terminal:
                from agent.surfaces.cli.chat.markdown import print_turn

                reply = await print_turn(pet, text, user, place, confirm)
            else:
                reply = await pet.respond(text, user=user, place=place, settle=json, confirm=confirm)
                print(json_text(_reply_json(reply)) if json else plain(reply.message), flush=True)
            await pet.settle(SETTLE_TIMEOUT + (pet.settings.model_timeout if json else 0), hurry=False)
            return reply

        talk = Conversation(pet, user, place, turn, _print_receipts if json else None)
        async for line in stdin_lines() if message is None else _once(message):
            if ends(line) and message is None and not json:
                break
            try:
                if message is not None or line.strip():
                    await talk.take(line)
            except BrokenPipeError:
                await pet.settle(SETTLE_TIMEOUT, hurry=False)  # nobody reads the output; the turn is stored
                raise
            except Exception as error:  # the next turn may succeed
                done = False
                session.report(error)
            sys.stdout.flush()
        talk.end()
    if not done:
        raise typer.Exit(1)


async def _once(message: str) -> AsyncIterator[str]:
    yield message


async def stdin_lines() -> AsyncIterator[str]:
    """Yield the lines of stdin. Raises OSError.

    A daemon thread reads them, because a pipe may stay silent for ever. It uses a buffer of its own: at exit
    the interpreter waits for the lock of Python's buffer."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[str | OSError | None] = asyncio.Queue()

    def read() -> None:
        end: OSError | None = None
        with suppress(RuntimeError):  # the loop is closed
            try:
                text = open(  # noqa: SIM115 - closes nothing
                    sys.stdin.fileno(), encoding="utf-8", errors="replace", newline="\n", closefd=False
                )
                for line in text:
                    loop.call_soon_threadsafe(lines.put_nowait, line)
            except OSError as error:
                end = error
            loop.call_soon_threadsafe(lines.put_nowait, end)

    if sys.stdin is None:
        return
    threading.Thread(target=read, daemon=True).start()
    while (line := await lines.get()) is not None:
        if isinstance(line, OSError):
            raise line
        yield line


def _print_receipts(receipts: Any) -> None:
    print(json_text({"forgotten": [forgotten_json(receipt) for receipt in receipts]}), flush=True)


def _reply_json(reply: "Reply") -> dict[str, Any]:
    return {
        "message": reply.message,
        "memories": [decision_json(decision) for decision in reply.memories],
        "tools": [{"name": tool.name, "arguments": tool.arguments, "ok": tool.ok} for tool in reply.tools],
        "trace_id": reply.trace_id,
        "model": reply.model,
    } | ({"forget": [asdict(candidate) for candidate in reply.forget]} if reply.forget is not None else {})
