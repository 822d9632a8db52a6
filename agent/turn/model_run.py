"""The model calls of one run, as the runner makes them: those that were answered are counted, the last one is
made without tools and told to answer, the reply's schema is asked for where the server bears it, and each
tool call gets an id of its own.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from agents import AgentOutputSchemaBase, ModelBehaviorError, ModelResponse, ModelSettings
from agents.exceptions import AgentsException
from agents.models.interface import Model, ModelTracing
from openai import OpenAIError
from openai.types.responses import (
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputItemDoneEvent,
)

from agent.asking import AskedFor
from agent.models import ChosenModel
from agent.output.answer import ANSWER_SCHEMA
from agent.tracing.model_call import recorded_call
from agent.tracing.trace import Usage
from agent.types import writable
from prompts import read


class Run(Model):
    """The chosen model, for one run."""

    def __init__(self, chosen: ChosenModel, max_calls: int) -> None:
        self._chosen = chosen
        self._max_calls = max_calls
        self._ids: set[str] = set()
        self._counted: list[Usage] = []

    @property
    def calls(self) -> int:
        """Those that were answered."""
        return len(self._counted)

    @property
    def usage(self) -> Usage:
        """Of all of them; zeros where the server did not count each."""
        if not all(one.input or one.output for one in self._counted):
            return Usage()
        return Usage(
            sum(one.input for one in self._counted),
            sum(one.output for one in self._counted),
            sum(one.cached for one in self._counted),
        )

    async def get_response(
        self,
        system_instructions: str | None,
        input: Any,
        model_settings: ModelSettings,
        tools: list[Any],
        output_schema: AgentOutputSchemaBase | None,
        handoffs: list[Any],
        tracing: ModelTracing,
        **rest: Any,
    ) -> ModelResponse:
        system, tools = self._prepare(system_instructions, tools)
        with recorded_call(self._chosen.name, system, input, tools, model_settings) as call, _readable():
            response = await self._chosen.model.get_response(
                system, input, model_settings, tools, self._schema, handoffs, tracing, **rest
            )
            call.answered(response.output, response.usage)
        response.output = self._settle(response.output, response.usage)
        return response

    async def stream_response(
        self,
        system_instructions: str | None,
        input: Any,
        model_settings: ModelSettings,
        tools: list[Any],
        output_schema: AgentOutputSchemaBase | None,
        handoffs: list[Any],
        tracing: ModelTracing,
        **rest: Any,
    ) -> AsyncIterator[Any]:
        system, tools = self._prepare(system_instructions, tools)
        events = self._chosen.model.stream_response(
            system, input, model_settings, tools, self._schema, handoffs, tracing, **rest
        )
        done: list[Any] = []
        begun = whole = False
        try:
            with recorded_call(self._chosen.name, system, input, tools, model_settings) as call, _readable():
                async for event in events:
                    if isinstance(event, ResponseOutputItemDoneEvent):
                        done.append(event.item)  # not passed on: the runner would go by these, ids and all
                        continue
                    if isinstance(event, ResponseCompletedEvent):
                        output = event.response.output or done
                        if not (begun or output):  # the chat adapter completes a stream of nothing at all
                            raise ModelBehaviorError(_NO_ANSWER)
                        call.answered(output, event.response.usage)
                        event.response.output = self._settle(output, event.response.usage)
                        whole = True
                    call.began()
                    begun = True
                    yield event
                if not whole:
                    raise ModelBehaviorError(_NO_ANSWER)
        finally:
            if isinstance(events, AsyncGenerator):  # nobody reads on: the connection is let go of now
                await events.aclose()

    @property
    def _schema(self) -> AgentOutputSchemaBase | None:
        return SCHEMA if self._chosen.structured == "schema" else None

    @property
    def _last(self) -> bool:
        return self.calls >= self._max_calls - 1

    def _prepare(self, system: str | None, tools: list[Any]) -> tuple[str | None, list[Any]]:
        return (f"{system}\n\n{read('last_call')}", []) if self._last else (system, tools)

    def _settle(self, output: list[Any], usage: Any) -> list[Any]:
        """Compatible servers leave ids empty or use them again, which the runner does not bear; and some
        models call tools that they were not offered."""
        last = self._last
        self._counted.append(_counted(usage))
        if last:
            return [item for item in output if not isinstance(item, ResponseFunctionToolCall)]
        for item in tool_calls(output):
            item.name = writable(item.name)
            if not item.call_id or item.call_id in self._ids:
                item.call_id = f"call_{len(self._ids)}_{self.calls}"
            self._ids.add(item.call_id)
        return output

    def get_retry_advice(self, request: Any) -> Any:
        return self._chosen.model.get_retry_advice(request)


@contextmanager
def _readable() -> Iterator[None]:
    """What an adapter stumbles over where an answer is none (a page of HTML, half a line) has many names."""
    try:
        yield
    except (OpenAIError, AgentsException):
        raise
    except Exception as error:
        raise ModelBehaviorError(f"{_NO_ANSWER} ({type(error).__name__})") from error


def _counted(usage: Any) -> Usage:
    """As a server counted a call; zeros where it did not."""
    details = getattr(usage, "input_tokens_details", None)
    return Usage(
        getattr(usage, "input_tokens", 0) or 0,
        getattr(usage, "output_tokens", 0) or 0,
        getattr(details, "cached_tokens", 0) or 0,
    )


_NO_ANSWER = "what it sent is no whole answer; check OPENAI_BASE_URL and HACHI_API"


def tool_calls(output: Sequence[Any]) -> list[ResponseFunctionToolCall]:
    return [item for item in output if isinstance(item, ResponseFunctionToolCall)]


SCHEMA = AskedFor("answer", ANSWER_SCHEMA)
