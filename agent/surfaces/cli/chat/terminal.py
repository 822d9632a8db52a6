"""Talk at a terminal: a prompt with history, a spinner, then the text as it arrives."""

import asyncio
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.patch_stdout import patch_stdout

from agent.surfaces.cli.chat.conversation import Conversation, ends
from agent.surfaces.cli.chat.markdown import print_turn
from agent.surfaces.cli.output import plain
from agent.surfaces.cli.session import Session
from agent.surfaces.signals import on_stop_signal
from memory.people.due_tasks import Reminder
from memory.text import storable

if TYPE_CHECKING:
    from agent.companion import Companion
    from agent.types import Reply
    from agent.wiring.runtime import Runtime


async def converse(pet: "Companion", session: Session, user: str, place: str) -> None:
    """Talk until Ctrl-D or `exit`. An error in a turn is reported in one line and the chat goes on."""
    settings = pet.settings
    model = "the offline stand-in" if settings.offline else settings.chosen_model
    print(f"Hachi, with {model}. What is remembered is in {settings.home}.")
    print("/help lists commands. Ctrl-C stops an answer; Ctrl-D or exit ends.")
    prompt: PromptSession[str] = PromptSession(
        history=ChatHistory(settings.home / "chat_history"), multiline=True, key_bindings=_keys()
    )

    async def take(text: str) -> "Reply":
        turn = asyncio.ensure_future(print_turn(pet, text, user, place, talk.propose, prefix="hachi: "))
        with on_stop_signal(turn.cancel, [signal.SIGINT]):
            return await turn

    talk = Conversation(pet, user, place, take)
    loading: list[asyncio.Task[Runtime]] = []

    def load(_: object) -> None:
        """Load the runtime while the person types, since that takes seconds. If it fails, the next turn loads
        it."""
        if not loading:
            loading.append(asyncio.create_task(pet.runtime()))

    prompt.app.after_render += load
    unregister = pet.reminders.register(user, _ring)
    ringing = asyncio.create_task(pet.reminders.run())
    try:
        while True:
            try:
                with patch_stdout():
                    text = await prompt.prompt_async(f"{user}: ")
            except KeyboardInterrupt:
                continue  # drops the line that was being typed
            except EOFError:
                return
            if ends(text):
                return
            try:
                if text.strip():
                    await talk.take(text)
            except asyncio.CancelledError:
                print("(stopped)")
            except Exception as error:  # reported; the chat goes on
                session.report(error)
    finally:
        unregister()
        for task in (ringing, *loading):
            task.cancel()
        await asyncio.gather(ringing, *loading, return_exceptions=True)


def _keys() -> KeyBindings:
    """Return the key bindings: Enter sends, also several lines; Alt-Enter starts a new line."""
    keys = KeyBindings()
    keys.add("enter")(lambda event: event.current_buffer.validate_and_handle())
    keys.add("escape", "enter")(lambda event: event.current_buffer.insert_text("\n"))
    return keys


async def _ring(_: Reminder, text: str) -> bool:
    print(f"\a{plain(text)}", flush=True)
    return True


class ChatHistory(FileHistory):
    """The lines typed in earlier chats. If the file cannot be used, the chat works without it."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))

    def load_history_strings(self) -> Iterable[str]:
        try:
            yield from list(super().load_history_strings())
        except OSError:
            return

    def store_string(self, string: str) -> None:
        try:
            super().store_string(storable(string))
        except OSError:
            sys.stderr.write("hachi: what you type cannot be kept in chat_history\n")
