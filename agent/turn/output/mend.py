"""Leave out of an answer what repeats the prompt word for word, and what repeats itself without end."""

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
"""From how many rounds of the same text a reply is a loop; characters that repeat; characters of a round."""
_END_LENGTH = 12


def without_echo(answer: Answer, rendered: Collection[str] = ()) -> Answer:
    """Return the answer without memories, tags and requests to forget that are sentences of a prompt, or of
    the `rendered` one. A message that is nothing else becomes empty; one that loops ends after its first
    round."""
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
    """Return the text up to the second round of what repeats, letter by letter, to its end."""
    end = text[-_END_LENGTH:]
    period = len(text) - len(end) - text.rfind(end, max(0, len(text) - LONGEST_LOOP), len(text) - 1)
    start = len(text)
    while start > period and text[start - 1] == text[start - 1 - period]:
        start -= 1
    repeated = len(text) - start
    loops = repeated >= (MOST_REPEATS - 1) * period and repeated >= SHORTEST_LOOP
    return text[:start].rstrip() if loops and any(map(str.isalpha, text[start:])) else text


def unsupported(memories: Sequence[NewMemory], read: Iterable[str]) -> list[str]:
    """Return the memories that share no word with what the model read. They are kept, since "yes, very" may
    answer a question."""
    if not memories:
        return []
    words = frozenset().union(*map(stems, read))
    return [one.content for one in memories if words.isdisjoint(stems(one.content))]
