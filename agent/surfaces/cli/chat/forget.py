"""Asks a person to confirm what they asked in words to forget."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent.surfaces.cli.output import forgotten_text, plain, short, when

if TYPE_CHECKING:
    from agent.companion import Companion
    from agent.types import Reply
    from memory.records import ForgetCandidate, Forgotten

NOTHING = "(Nothing that you told matches this, so nothing is forgotten; `hachi memories list` shows all.)"
KEPT = "(Nothing is forgotten.)"
QUESTION, WHICH = "Forget it? y, N, or its numbers: ", "Forget which? N, or its numbers: "
ASK_A_PROGRAM = "Forget it? Say y, n or its numbers with the next line."
WHICH_A_PROGRAM = "Forget which? Say n or its numbers with the next line."
YES, NO = frozenset({"y", "yes"}), frozenset({"n", "no"})


def forget_lines(candidates: "Sequence[ForgetCandidate]") -> list[str]:
    """A numbered line for each candidate, or one that says that there is none."""
    lines = [f"{at}. {plain(c.content)} ({when(c.created_at)})" for at, c in enumerate(candidates, 1)]
    return lines or [NOTHING]


def ask_a_program(candidates: "Sequence[ForgetCandidate]") -> str:
    """The question to a program, which answers with the next line."""
    if any(candidate.sure for candidate in candidates):
        return ASK_A_PROGRAM
    return WHICH_A_PROGRAM


def forget_commands(candidates: "Sequence[ForgetCandidate]") -> list[str]:
    """The commands that forget the candidates, for where nobody can be asked."""
    groups = {"memory": "memories", "message": "messages"}
    return [f"hachi {groups[c.kind]} delete {short(c.id)}  # {plain(c.content)}" for c in candidates]


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
        print(KEPT)
    return confirmed


def print_receipts(receipts: "Sequence[Forgotten]") -> None:
    for receipt in receipts:
        print(plain(forgotten_text(receipt, receipt.content)))
    if not receipts:
        print(KEPT, flush=True)
