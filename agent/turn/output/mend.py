"""Leave out of an answer what repeats the prompt word for word, and what repeats itself without end."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from agent.turn.output.answer import Answer
from agent.turn.output.parse import FALLBACK_NOTED
from memory.index.bm25 import stems
from memory.records import Draft
from prompts.echo import is_echo

MOST_REPEATS, SHORTEST_LOOP, LONGEST_LOOP = 8, 200, 1_000
"""From how many rounds of the same text a reply is a loop; characters that repeat; characters of a round."""
_END_LENGTH = 12


def without_echo(answer: Answer) -> Answer:
    """Return the answer without memories, tags and requests to forget that are sentences of the prompt. A
    message that is nothing else becomes empty; one that loops ends after its first round."""
    memories = tuple(
        replace(one, subjects=tuple(tag for tag in one.subjects if not is_echo(tag)))
        for one in answer.memories
        if not is_echo(one.content)
    )
    message = until_loop(answer.message)
    if is_echo(message):
        message = FALLBACK_NOTED if memories else ""
    return Answer(message, memories, tuple(one for one in answer.forget if not is_echo(one)))


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


def unsupported(memories: Sequence[Draft], read: Iterable[str]) -> list[str]:
    """Return the memories that share no word with what the model read. They are kept, since "yes, very" may
    answer a question."""
    if not memories:
        return []
    words = frozenset().union(*map(stems, read))
    return [one.content for one in memories if words.isdisjoint(stems(one.content))]
