"""A model of the Agents SDK that answers by a script and keeps what it was asked.

`agents.testing.ScriptedModel` fails beyond its script. This one goes on with `then`, and may wait, raise, or
answer what it is asked.
"""

import asyncio
import json
import re
from typing import Any

from agents import Model, ModelResponse, Usage
from agents.testing import assistant_message

I_SEE = {"message": "I see.", "memories": []}


def id_beside(content: str, shown: str) -> str | None:
    """The id that a prompt or a tool's answer shows beside this fact or task; None if it shows neither."""
    exact = re.escape(content)
    fact, task = rf"{exact} \([^()\n]*\) \[(\w+)\]", rf"\[task (\w+)\] {exact} \("
    found = re.search(rf'{fact}|{task}|"id": "(\w+)"[^{{}}]*"content": "{exact}"', shown)
    return next(filter(None, found.groups())) if found else None


class AnsweringModel(Model):
    """Gives each of `answers` once, then always `then`.

    An answer is a text, an object to send as JSON, a list of output items, an exception to raise, or a
    function of the question that returns one of these.
    """

    def __init__(
        self, *answers: Any, then: Any = I_SEE, seconds: float = 0.0, hold: str | None = None
    ) -> None:
        self.asked: list[str] = []
        """The first message of each call."""
        self.systems: list[str] = []
        self.inputs: list[Any] = []
        self.held, self.release = asyncio.Event(), asyncio.Event()
        """A call whose input contains `hold` sets `held` and waits for `release`."""
        self._answers = list(answers)
        self._then = then
        self._seconds = seconds
        self._hold = hold

    def shown(self) -> str:
        """All texts of the last call: instructions, messages and what tools answered."""
        given = self.inputs[-1]
        items = (
            [given] if isinstance(given, str) else [one.get("content") or one.get("output") for one in given]
        )
        return "\n".join([self.systems[-1], *map(str, items)])

    async def get_response(
        self, system_instructions: str | None, input: Any, *_: Any, **__: Any
    ) -> ModelResponse:
        self.systems.append(system_instructions or "")
        self.inputs.append(input)
        asked = input if isinstance(input, str) else input[0]["content"]
        self.asked.append(asked)
        if self._hold is not None and self._hold in str(input):
            self.held.set()
            await self.release.wait()
        await asyncio.sleep(self._seconds)
        answer = self._answers.pop(0) if self._answers else self._then
        if callable(answer):
            answer = answer(asked)
        if isinstance(answer, Exception):
            raise answer
        if not isinstance(answer, list):
            answer = [assistant_message(answer if isinstance(answer, str) else json.dumps(answer))]
        return ModelResponse(output=answer, usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError
