"""What a person may type in the chat beside a message, such as `/memories`, and how they confirm what is
to be forgotten."""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from agent.errors import BadInput
from agent.surfaces.cli.output import (
    MEMORY_COLUMNS,
    forget_command,
    forgotten_text,
    memory_row,
    plain,
    print_table,
    when,
)
from agent.surfaces.cli.people import TASK_COLUMNS, print_context, task_row, zone_of
from agent.types.records_json import goes_with
from memory.records import ForgetCandidate

if TYPE_CHECKING:
    from agent.companion import Companion
    from agent.types import Reply
    from memory.records import Forgotten


NOTHING = "(Nothing that you told matches this, so nothing is forgotten; `hachi memories list` shows all.)"
NOTHING_FORGOTTEN = "(Nothing is forgotten.)"
QUESTION, WHICH = "Forget it? y, N, or its numbers: ", "Forget which? N, or its numbers: "
ASK_A_PROGRAM = "Forget it? Say y, n or its numbers with the next line."
WHICH_A_PROGRAM = "Forget which? Say n or its numbers with the next line."
YES, NO = frozenset({"y", "yes"}), frozenset({"n", "no"})


def forget_lines(candidates: "Sequence[ForgetCandidate]") -> list[str]:
    """A numbered line for each candidate, or one that says that there is none."""
    lines = []
    for at, one in enumerate(candidates, 1):
        about = "; ".join(filter(None, (when(one.created_at), goes_with(one))))
        lines.append(f"{at}. {plain(one.content)} ({about})")
        lines += [f"     “{plain(text)}”" for text in one.messages if text != one.content]
    return lines or [NOTHING]


def ask_a_program(candidates: "Sequence[ForgetCandidate]") -> str:
    """The question to a program, which answers with the next line."""
    if any(candidate.sure for candidate in candidates):
        return ASK_A_PROGRAM
    return WHICH_A_PROGRAM


def forget_commands(candidates: "Sequence[ForgetCandidate]") -> list[str]:
    """The commands that forget the candidates, for where nobody can be asked."""
    return [plain(forget_command(candidate)) for candidate in candidates]


def chosen(answer: str, candidates: "Sequence[ForgetCandidate]") -> "list[ForgetCandidate]":
    """The candidates that the answer names: those that are sure for "y" and "yes", else those with its
    numbers."""
    if answer.strip().lower() in YES:
        return [candidate for candidate in candidates if candidate.sure]
    numbers = {int(number) for number in re.findall(r"\d+", answer)}
    return [candidate for at, candidate in enumerate(candidates, 1) if at in numbers]


def is_answer(line: str, candidates: "Sequence[ForgetCandidate]") -> bool:
    """Whether a line from a program answers the question: yes, no, or nothing but numbers of candidates."""
    said = line.strip().lower()
    numbers = re.split(r"[,\s]+", said)
    return said in YES | NO or {str(at) for at in range(1, len(candidates) + 1)}.issuperset(numbers)


async def confirm_forget(pet: "Companion", reply: "Reply", user: str, place: str) -> None:
    """Show what the person may mean, ask, and forget what they confirm."""
    if reply.forget is not None and (confirmed := await ask(reply.forget)):
        print_receipts(await pet.memories.forget_confirmed(confirmed, user=user, place=place))


async def ask(candidates: "Sequence[ForgetCandidate]") -> "list[ForgetCandidate]":
    """Show the candidates, and return those that the person confirms. Where there are none, say so."""
    print(*forget_lines(candidates), sep="\n")
    if not candidates:
        return []
    from prompt_toolkit import PromptSession

    try:
        question = QUESTION if any(candidate.sure for candidate in candidates) else WHICH
        answer = await PromptSession[str]().prompt_async(question)
    except (EOFError, KeyboardInterrupt):
        answer = ""
    confirmed = chosen(answer, candidates)
    if not confirmed:
        print(NOTHING_FORGOTTEN)
    return confirmed


def print_receipts(receipts: "Sequence[Forgotten]") -> None:
    for receipt in receipts:
        print(plain(forgotten_text(receipt, receipt.content)))
    if not receipts:
        print(NOTHING_FORGOTTEN, flush=True)


MOST_SHOWN = 20
"""Facts that `/memories` shows; `hachi memories list` shows all."""
_COMMAND = re.compile(r"/([a-z]+)(?:\s+(.*))?", re.DOTALL)


def ends(line: str) -> bool:
    return line.strip().lower() in {"exit", "quit"}


def is_command(line: str) -> bool:
    return _COMMAND.fullmatch(line.strip()) is not None


@dataclass
class ChatCommands:
    pet: "Companion"
    user: str
    place: str
    last_trace: str | None = None
    """The id of the newest turn's trace."""
    ask: Callable[[Sequence[ForgetCandidate]], Awaitable[list[ForgetCandidate]]] = ask
    """Shows what the person may mean, and returns what they confirm at once."""

    async def run(self, line: str) -> bool:
        """Run the command that the line is. Returns False for a message, "/etc/hosts is empty" among them.
        Raises BadInput for a command that is none of these."""
        typed = _COMMAND.fullmatch(line.strip())
        if typed is None:
            return False
        name, words = typed[1], (typed[2] or "").strip()
        if name not in COMMANDS:
            raise BadInput(f"there is no /{name}; /help lists what there is")
        await COMMANDS[name].run(self, words)
        return True

    async def help(self, _: str = "") -> None:
        for name, command in COMMANDS.items():
            print(f"/{f'{name} {command.argument}'.strip():<18} {command.help}")
        print("Alt-Enter begins a new line. Ctrl-C stops an answer; Ctrl-D or exit ends.")

    async def memories(self, words: str) -> None:
        if words:
            hits = await self.pet.search_memories(words, user=self.user, place=self.place)
            found = [hit.memory for hit in hits if hit.memory]
        else:
            found = await self.pet.memories.list(user=self.user, place=self.place, limit=MOST_SHOWN)
        if found:
            print_table(MEMORY_COLUMNS, map(memory_row, found))
        else:
            print("(Nothing is remembered.)")

    async def forget(self, words: str) -> None:
        if not words:
            print("(Say what: /forget the name of my boss)")
            return
        at: dict[str, Any] = {"user": self.user, "place": self.place}
        if chosen := await self.ask(await self.pet.memories.find_to_forget(words, **at)):
            print_receipts(await self.pet.memories.forget_confirmed(chosen, **at))

    async def tasks(self, _: str) -> None:
        found = await self.pet.tasks.list(user=self.user)
        zone = await zone_of(self.pet, self.user)
        if found:
            print_table(TASK_COLUMNS, [task_row(task, zone) for task in found])
        else:
            print("(There are no open tasks.)")

    async def context(self, _: str) -> None:
        print_context(self.user, await self.pet.people.context(user=self.user, place=self.place))

    async def trace(self, _: str) -> None:
        from agent.surfaces.cli.traces.lines import print_lines
        from agent.tracing.render.trace import overview_lines

        if self.last_trace is None:
            print("(There was no turn yet.)")
            return
        await self.pet.components.recorder.flush()
        found = await self.pet.traces.get_with_jobs(self.last_trace, datetime.now(UTC))
        print_lines(overview_lines(found.trace, found.jobs))


@dataclass(frozen=True)
class ChatCommand:
    run: Callable[[ChatCommands, str], Awaitable[None]]
    help: str
    argument: str = ""


COMMANDS = {
    "memories": ChatCommand(ChatCommands.memories, "what is remembered of you here", "[WORDS]"),
    "forget": ChatCommand(ChatCommands.forget, "forget a fact, with what was said of it", "WORDS"),
    "tasks": ChatCommand(ChatCommands.tasks, "your open tasks"),
    "context": ChatCommand(ChatCommands.context, "what is known of you"),
    "trace": ChatCommand(ChatCommands.trace, "what happened in the last turn, and why"),
    "help": ChatCommand(ChatCommands.help, "this"),
}
