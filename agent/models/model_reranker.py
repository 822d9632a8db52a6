"""Asks a model which passages of documents answer a question best, in one call."""

from collections.abc import Sequence

from agent.models.ask import ask
from agent.models.choice.choose import ChosenModel
from agent.models.json_objects import object_with
from memory.documents.reranking import Candidate, Ranked
from memory.records import Chunk
from memory.text.quoting import quoted
from prompts import render

SHOWN = 20
"""How many candidates the model sees: the first ones, which are the best of the fused order."""
LONGEST = 1_200
"""How many characters of each candidate the model sees."""


async def rerank(chosen: ChosenModel, query: str, candidates: Sequence[Candidate], limit: int) -> Ranked:
    """Return the ids of the best candidates with scores, best first.

    Raises ValueError for an unreadable answer, and what the model's library raises; the search then keeps the
    fused order.
    """
    shown = candidates[:SHOWN]
    if not shown:
        return []
    passages = "\n\n".join(_passage(number, one.chunk) for number, one in enumerate(shown, 1))
    question = render("rerank", question=quoted(query), passages=passages, limit=str(limit))
    answer = object_with(await ask(chosen, "rerank", question), "best")
    best = answer["best"] if answer else None
    if not isinstance(best, list):
        raise ValueError("the model's order of passages could not be read")
    named = dict.fromkeys(int(n) for n in best if str(n).isdecimal() and 1 <= int(n) <= len(shown))
    return [(shown[n - 1].id, 1.0 - at / (len(named) + 1)) for at, n in enumerate([*named][:limit])]


def _passage(number: int, chunk: Chunk) -> str:
    under = f" > {chunk.heading}" if chunk.heading else ""
    return f"Passage {number}\n{quoted(f'{chunk.title}{under}')}\n{quoted(chunk.text[:LONGEST])}"
