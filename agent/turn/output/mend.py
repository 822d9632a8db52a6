"""Remove echoes of the prompt from an answer, and end a reply that repeats itself without end."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import filterfalse

from agent.turn.output.answer import Answer
from agent.turn.output.parse import FALLBACK_NOTED
from memory.index.bm25 import stems
from memory.records import NewMemory
from prompts.echo import is_echo

MOST_REPEATS, SHORTEST_LOOP, LONGEST_LOOP = 8, 200, 1_000
"""A loop has at least so many rounds and repeated characters; the last is the most of a round."""
_END_LENGTH = 12


def without_echo(answer: Answer, rendered: Collection[str] = ()) -> Answer:
    """Return the answer without echoes: memories, tags and requests to forget that are sentences of our
    prompts or of the `rendered` one. A message that is an echo becomes empty; one that loops ends after its
    first round."""
    copied = partial(is_echo, rendered=rendered)
    memories = tuple(
        replace(one, subjects=tuple(filterfalse(copied, one.subjects)))
        for one in answer.memories
        if not copied(one.content)
    )
    message = until_loop(answer.message)
    if copied(message):
        message = FALLBACK_NOTED if memories else ""
    forget = tuple(filterfalse(copied, answer.forget))
    return replace(answer, message=message, memories=memories, forget=forget)


def until_loop(text: str) -> str:
    """Return the text without the repetitions at its end: the first round stays."""
    end = text[-_END_LENGTH:]
    period = len(text) - len(end) - text.rfind(end, max(0, len(text) - LONGEST_LOOP), len(text) - 1)
    start = len(text)
    while start > period and text[start - 1] == text[start - 1 - period]:
        start -= 1
    repeated = len(text) - start
    loops = repeated >= (MOST_REPEATS - 1) * period and repeated >= SHORTEST_LOOP
    return text[:start].rstrip() if loops and any(map(str.isalpha, text[start:])) else text


def unsupported(memories: Sequence[NewMemory], read: Iterable[str]) -> list[str]:
    """Return the memories that share no word with the texts that the model read. They are stored all the
    same, since "yes, very" may answer a question."""
    if not memories:
        return []
    words = frozenset().union(*map(stems, read))
    return [one.content for one in memories if words.isdisjoint(stems(one.content))]
