"""A model as the one who says which passages of documents are worth reading."""

from collections.abc import Sequence

from agent.asking import ask
from agent.models import ChosenModel
from agent.output.json_repair import object_with
from memory.documents import Candidate
from prompts import render

SHOWN = 20
"""Candidates that the model is shown: the best by the fused order, in which they come …"""
LONGEST = 1_200
"""… and so many characters of each."""


class ModelReranker:
    """A `memory.documents.Reranker`: one model call for a look-up. Raises ValueError where the answer cannot
    be read, and what the model's library raises; the search then goes by the fused order."""

    def __init__(self, chosen: ChosenModel) -> None:
        self._chosen = chosen

    async def __call__(
        self, query: str, candidates: Sequence[Candidate], limit: int
    ) -> list[tuple[str, float]]:
        shown = candidates[:SHOWN]
        if not shown:
            return []
        passages = "\n\n".join(_passage(number, one) for number, one in enumerate(shown, 1))
        question = render("rerank", question=_quoted(query), passages=passages, limit=str(limit))
        numbers = _best(await ask(self._chosen, "rerank", question), len(shown))
        return [(shown[n - 1].id, 1.0 - at / (len(numbers) + 1)) for at, n in enumerate(numbers[:limit])]


def _passage(number: int, candidate: Candidate) -> str:
    under = f" > {candidate.heading}" if candidate.heading else ""
    return f"Passage {number}\n{_quoted(f'{candidate.title}{under}')}\n{_quoted(candidate.text[:LONGEST])}"


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.splitlines())


def _best(answer: str, most: int) -> list[int]:
    found = object_with(answer, "best")
    best = found["best"] if found else None
    if not isinstance(best, list):
        raise ValueError("the model's order of passages could not be read")
    return list(dict.fromkeys(int(n) for n in best if str(n).isdecimal() and 1 <= int(n) <= most))
