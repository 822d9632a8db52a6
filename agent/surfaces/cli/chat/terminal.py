"""The conversation at a terminal: a prompt with history, a spinner while Hachi thinks, then its text."""

import asyncio
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.history import FileHistory
from prompt_toolkit.patch_stdout import patch_stdout

from agent.surfaces.cli.chat.turn import announce, show_turn
from agent.surfaces.cli.options import clean
from agent.surfaces.cli.session import Session

if TYPE_CHECKING:
    from agent.companion import Companion
    from agent.wiring import Runtime

LEAVING = frozenset({"exit", "quit"})


async def converse(pet: "Companion", session: Session, user: str, place: str) -> None:
    """Until Ctrl-D or `exit`. A turn that fails is told in one line, and the conversation goes on."""
    settings = pet.settings
    announce(pet)
    model = "the offline stand-in" if settings.offline else settings.chosen_model
    print(f"Hachi, with {model}. What is remembered is in {settings.home}.")
    print("Ctrl-C stops an answer; Ctrl-D or exit ends.")
    prompt: PromptSession[str] = PromptSession(history=ChatHistory(settings.home / "chat_history"))
    runtime = _Runtime(pet)
    # The runtime takes seconds to load: begin as soon as the prompt stands, while the person types.
    prompt.app.after_render += lambda _: runtime.load()
    try:
        while True:
            try:
                with patch_stdout():
                    text = await prompt.prompt_async(f"{user}: ")
            except KeyboardInterrupt:
                continue  # what was being typed is dropped
            except EOFError:
                return
            if text.strip().lower() in LEAVING:
                return
            if text.strip():
                await _turn(pet, session, runtime, text, user, place)
    finally:
        await runtime.stop()


async def _turn(
    pet: "Companion", session: Session, runtime: "_Runtime", text: str, user: str, place: str
) -> None:
    async def answered() -> None:
        await show_turn(pet, text, user, place, name="hachi: ", ready=runtime.ready)

    turn = asyncio.create_task(answered())
    with _interrupting(turn):
        try:
            await asyncio.wait([turn])
        finally:
            turn.cancel()
    if turn.cancelled():
        print("(stopped)")
    elif isinstance(error := turn.exception(), Exception):
        session.complain(error)


class _Runtime:
    """The Agents SDK and all that leans on it, loaded once, beside the conversation."""

    def __init__(self, pet: "Companion") -> None:
        self._pet = pet
        self._loading: asyncio.Task[Runtime] | None = None

    def load(self) -> None:
        if self._loading is None:
            self._loading = asyncio.create_task(self._pet.runtime())

    async def ready(self) -> None:
        """Raises what loading raised, once; then it is tried again."""
        self.load()
        assert self._loading is not None
        try:
            await asyncio.shield(self._loading)
        except Exception:
            self._loading = None
            raise

    async def stop(self) -> None:
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.gather(self._loading, return_exceptions=True)


@contextmanager
def _interrupting(turn: "asyncio.Task[None]") -> Iterator[None]:
    """Ctrl-C stops this turn and nothing else."""
    loop = asyncio.get_running_loop()

    def stop(_signal: int, _frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(turn.cancel)

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class ChatHistory(FileHistory):
    """What was typed, kept between conversations. A file that cannot be read or written costs only that."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))

    def load_history_strings(self) -> Iterable[str]:
        try:
            yield from list(super().load_history_strings())
        except OSError:
            return

    def store_string(self, string: str) -> None:
        try:
            super().store_string(clean(string))
        except OSError:
            sys.stderr.write("hachi: what you type cannot be kept in chat_history\n")
