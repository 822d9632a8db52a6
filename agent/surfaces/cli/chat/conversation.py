"""Handle each line of a chat: a message, a command such as `/memories`, or the answer to a question: what to
forget, or whether to run a call."""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from agent.errors import BadInput
from agent.surfaces.cli.output import (
    forget_command,
    forgotten_text,
    memory_columns,
    plain,
    print_records,
    when,
)
from agent.surfaces.cli.people import print_context, task_columns
from agent.surfaces.cli.session import Companion
from agent.types.labels import call_in_words, call_title
from agent.types.records_json import describe_cascade
from memory.records import ForgetCandidate, Forgotten

if TYPE_CHECKING:
    from agent.types import Reply
    from tools.proposed_call import ProposedCall

NOTHING = "(Nothing that you told matches this, so nothing is forgotten; `hachi memories list` shows all.)"
NOTHING_FORGOTTEN = "(Nothing is forgotten.)"
QUESTION = "Forget it? Say y, n or its numbers with the next line."
WHICH = "Forget which? Say n or its numbers with the next line."
YES, NO = frozenset({"y", "yes"}), frozenset({"n", "no"})
MOST_SHOWN = 20
"""Maximum number of facts that `/memories` shows; `hachi memories list` shows all."""
_COMMAND = re.compile(r"/([a-z]+)(?:\s+(.*))?", re.DOTALL)
HELP = """\
/memories [WORDS]  what is remembered of you here
/forget WORDS      forget a fact, with what was said of it
/tasks             your open tasks
/context           what is known of you
/trace             what happened in the last turn, and why
/help              this
Alt-Enter begins a new line. Ctrl-C stops an answer; Ctrl-D or exit ends."""


def ends(line: str) -> bool:
    return line.strip().lower() in {"exit", "quit"}


def chosen(answer: str, candidates: Sequence[ForgetCandidate]) -> list[ForgetCandidate]:
    """Return the candidates that the answer chooses: for "y" and "yes" the certain ones, else those with its
    numbers."""
    if answer.strip().lower() in YES:
        return [candidate for candidate in candidates if candidate.sure]
    numbers = {int(number) for number in re.findall(r"\d+", answer)}
    return [candidate for at, candidate in enumerate(candidates, 1) if at in numbers]


def is_answer(line: str, candidates: Sequence[ForgetCandidate]) -> bool:
    """Return whether a line is yes, no, or only numbers of candidates."""
    text = line.strip().lower()
    numbers = re.split(r"[,\s]+", text)
    return text in YES | NO or {str(at) for at in range(1, len(candidates) + 1)}.issuperset(numbers)


@dataclass
class Conversation:
    pet: Companion
    user: str
    place: str
    turn: Callable[[str], Awaitable["Reply"]]
    """Runs a turn and shows the reply."""
    tell: Callable[[Sequence[Forgotten]], object] | None = None
    """Shows receipts; None prints them for people."""
    asked: tuple[ForgetCandidate, ...] = ()
    """The candidates that the next line may choose to forget."""
    proposed: "tuple[ProposedCall, ...]" = ()
    """The calls that the next line may confirm."""
    last_trace: str | None = None

    @property
    def for_people(self) -> bool:
        return self.tell is None

    async def take(self, line: str) -> None:
        """Handle one line. Raises BadInput for an unknown command, and whatever a turn raises."""
        asked, self.asked = self.asked, ()
        proposed, self.proposed = self.proposed, ()
        command = _COMMAND.fullmatch(line.strip())
        if asked and is_answer(line, asked):
            await self._forget(chosen(line, asked))
        elif proposed and line.strip().lower() in YES | NO:
            await self._run(proposed if line.strip().lower() in YES else ())
        elif command is None:
            reply = await self.turn(line)
            self.last_trace = reply.trace_id
            if reply.forget is not None:
                self._ask(reply.forget)
            call: ProposedCall
            for call in self.proposed:
                print(
                    f"{plain(call_in_words(call))}\nShall I do this? Say y or n with the next line.",
                    flush=True,
                )
        elif not self.for_people:
            raise BadInput(f"/{command[1]} prints for people; with --json use what `hachi --help` lists")
        elif (name := command[1]) in COMMANDS:
            await COMMANDS[name](self, (command[2] or "").strip())
        else:
            raise BadInput(f"there is no /{name}; /help lists what there is")

    async def propose(self, call: "ProposedCall") -> None:
        """Ask whether to run a call. The next line is the answer."""
        self.proposed = (*self.proposed, call)

    async def _run(self, calls: "Sequence[ProposedCall]") -> None:
        for call in calls:
            reply = await self.pet.calls.run(call)
            self.last_trace = reply.trace_id
            print(plain(reply.message or f"({call_title(call)}: done.)"), flush=True)
        if not calls:
            print("(Nothing is run.)", flush=True)

    def _ask(self, candidates: tuple[ForgetCandidate, ...]) -> None:
        """Show the candidates to forget. The next line may choose from them."""
        self.asked = candidates
        if not self.for_people:
            return
        for at, one in enumerate(candidates, 1):
            about = "; ".join(filter(None, (when(one.created_at), describe_cascade(one))))
            print(f"{at}. {plain(one.content)} ({about})")
            for text in one.messages:
                if text != one.content:
                    print(f"     “{plain(text)}”")
        print(question(candidates) if candidates else NOTHING, flush=True)

    async def _forget(self, confirmed: Sequence[ForgetCandidate]) -> None:
        forget = self.pet.memories.forget_confirmed
        receipts = await forget(confirmed, user=self.user, place=self.place) if confirmed else []
        if self.tell:
            self.tell(receipts)
            return
        texts = [plain(forgotten_text(receipt, receipt.content)) for receipt in receipts]
        print("\n".join(texts) or NOTHING_FORGOTTEN, flush=True)

    def end(self) -> None:
        """Show the commands for the candidates that nobody has confirmed."""
        if self.asked and self.for_people:
            commands = [plain(forget_command(candidate)) for candidate in self.asked]
            print(NOTHING_FORGOTTEN, *commands, sep="\n")

    async def help(self, _: str) -> None:
        print(HELP)

    async def memories(self, words: str) -> None:
        memories = self.pet.memories
        if words:
            hits = await memories.search(words, user=self.user, place=self.place, kind="memory")
            found = [hit.memory for hit in hits if hit.memory]
        else:
            found = await memories.list(user=self.user, place=self.place, limit=MOST_SHOWN)
        if found:
            names = self.pet.components.transcript.speakers.names
            print_records(memory_columns(await names({memory.user_id for memory in found})), found)
        else:
            print("(Nothing is remembered.)")

    async def forget(self, words: str) -> None:
        if words:
            self._ask(await self.pet.memories.find_to_forget(words, user=self.user, place=self.place))
        else:
            print("(Say what: /forget the name of my boss)")

    async def tasks(self, _: str) -> None:
        found = await self.pet.tasks.list(user=self.user)
        if found:
            print_records(task_columns(await self.pet.people.zone(user=self.user)), found)
        else:
            print("(There are no open tasks.)")

    async def context(self, _: str) -> None:
        print_context(self.user, await self.pet.people.context(user=self.user, place=self.place))

    async def trace(self, _: str) -> None:
        from agent.surfaces.cli.traces.lines import print_lines
        from agent.tracing.render.trace import trace_lines

        if self.last_trace is None:
            print("(There was no turn yet.)")
            return
        await self.pet.components.recorder.flush()
        found = await self.pet.traces.get_with_jobs(self.last_trace, datetime.now(UTC))
        print_lines(trace_lines(found.trace, found.jobs))


def question(candidates: Sequence[ForgetCandidate]) -> str:
    return QUESTION if any(candidate.sure for candidate in candidates) else WHICH


COMMANDS: dict[str, Callable[[Conversation, str], Awaitable[None]]] = {
    name: getattr(Conversation, name) for name in ("memories", "forget", "tasks", "context", "trace", "help")
}
