"""`hachi chat`: a conversation at a terminal (`terminal.py`), otherwise one message a line."""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.errors import BadInput
from agent.surfaces.cli.chat.commands import (
    NOTHING,
    NOTHING_FORGOTTEN,
    ChatCommands,
    ask_a_program,
    chosen,
    ends,
    forget_commands,
    forget_lines,
    is_answer,
    is_command,
    print_receipts,
)
from agent.surfaces.cli.options import PlaceName, User
from agent.surfaces.cli.output import interactive, plain
from agent.surfaces.cli.session import Session, with_session
from agent.tracing.render.text import json_text
from agent.types.records_json import decision_json, forgotten_json


async def stdin_lines() -> AsyncIterator[str]:
    """A daemon thread reads, because a pipe may stay silent for ever. Raises OSError."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[str | OSError | None] = asyncio.Queue()

    def deliver() -> None:
        with suppress(RuntimeError):  # the loop has ended
            try:
                for line in _lines():
                    loop.call_soon_threadsafe(lines.put_nowait, line)
                loop.call_soon_threadsafe(lines.put_nowait, None)
            except OSError as error:
                loop.call_soon_threadsafe(lines.put_nowait, error)

    threading.Thread(target=deliver, daemon=True).start()
    while (line := await lines.get()) is not None:
        if isinstance(line, OSError):
            raise line
        yield line


def _lines() -> Iterator[str]:
    """Read through a buffer of our own: the interpreter, when it exits, waits for the lock of Python's."""
    if sys.stdin is not None:
        with open(
            sys.stdin.fileno(), encoding="utf-8", errors="replace", newline="\n", closefd=False
        ) as text:
            yield from text


if TYPE_CHECKING:
    from agent.companion import Companion
    from agent.types import Reply
    from memory.records import ForgetCandidate

    Candidates = tuple[ForgetCandidate, ...]

ANNOUNCEMENT = (
    "No language model is configured: this is Hachi's small rule-based stand-in. "
    "Set OPENAI_API_KEY or OPENAI_BASE_URL for a real one."
)
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
    """Talk with Hachi. Input that is no terminal is read one message or command a line, such as /memories;
    where Hachi asks what to forget, the next line may be the answer: y, n, or numbers of the list."""
    session.settings().chosen_model  # noqa: B018 - raises before anything is typed
    at_terminal = not json and sys.stdout.isatty()
    done, asked = True, None
    async with session.companion(upkeep=message is None) as pet:
        if pet.settings.offline:
            print(ANNOUNCEMENT, file=sys.stderr)
        if at_terminal and message is None and interactive():
            from agent.surfaces.cli.chat.terminal import converse

            await converse(pet, session, user, place)
            return
        commands = LineCommands(pet, user, place)
        async for line in _messages(message):
            if ends(line) and message is None and not json:
                break
            answered, asked = asked, None
            try:
                if answered and is_answer(line, answered):
                    await _forget(pet, line, answered, user, place, json=json)
                    continue
                if is_command(line):
                    asked = await commands.take(line, json=json)
                else:
                    streamed = at_terminal and message is not None
                    asked = await _turn(commands, line, json=json, streamed=streamed)
                if asked and message is None and not json:
                    print(*forget_lines(asked), ask_a_program(asked), sep="\n", flush=True)
            except BrokenPipeError:
                await pet.settle(SETTLE_TIMEOUT, hurry=False)  # nobody reads any more, but the turn is kept
                raise
            except Exception as error:  # the next turn may succeed
                done = False
                session.report(error)
    if asked and not json:  # nobody has answered
        print(NOTHING_FORGOTTEN, *forget_commands(asked), sep="\n")
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


class LineCommands(ChatCommands):
    """Where there is no prompt: the next line answers what a command asks."""

    async def take(self, line: str, *, json: bool) -> "Candidates | None":
        """Run the command, and return what it asks about. Raises BadInput."""
        if json:
            raise BadInput(f"{line.split()[0]} prints for people; with --json use what `hachi --help` lists")
        asked: Candidates | None = None

        async def later(candidates: "Sequence[ForgetCandidate]") -> "list[ForgetCandidate]":
            nonlocal asked
            asked = tuple(candidates)
            if not candidates:
                print(NOTHING)
            return []

        self.ask = later
        await self.run(line)
        sys.stdout.flush()
        return asked


async def _turn(commands: ChatCommands, text: str, *, json: bool, streamed: bool) -> "Candidates | None":
    """Take one turn with its background work, and print the reply. Returns what the person may have asked to
    forget."""
    pet, user, place = commands.pet, commands.user, commands.place
    if streamed:
        from agent.surfaces.cli.chat.markdown import print_turn

        reply = await print_turn(pet, text, user, place)
    else:
        reply = await pet.respond(text, user=user, place=place, settle=json)
        print(json_text(_reply_json(reply)) if json else plain(reply.message), flush=True)
    if reply.forget == () and not json:
        print(NOTHING, flush=True)
    commands.last_trace = reply.trace_id
    await pet.settle(SETTLE_TIMEOUT + (pet.settings.model_timeout if json else 0), hurry=False)
    return reply.forget


async def _forget(
    pet: "Companion", answer: str, asked: "Candidates", user: str, place: str, *, json: bool
) -> None:
    """Forget what the answer names, and print the receipts."""
    confirmed = chosen(answer, asked)
    receipts = await pet.memories.forget_confirmed(confirmed, user=user, place=place) if confirmed else []
    if json:
        print(json_text({"forgotten": [forgotten_json(receipt) for receipt in receipts]}), flush=True)
    else:
        print_receipts(receipts)


def _reply_json(reply: "Reply") -> dict[str, Any]:
    return {
        "message": reply.message,
        "memories": [decision_json(decision) for decision in reply.memories],
        "tools": [{"name": tool.name, "arguments": tool.arguments, "ok": tool.ok} for tool in reply.tools],
        "trace_id": reply.trace_id,
        "model": reply.model,
    } | ({"forget": [asdict(candidate) for candidate in reply.forget]} if reply.forget is not None else {})
