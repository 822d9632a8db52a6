"""Count the model calls of a turn, retry them, and forbid tools in the last one.

`TurnModel` is between the SDK's runner and the chosen model. It also instructs the last call to answer,
requests the answer's schema where the server enforces it, and gives each tool call a unique id.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import AbstractContextManager, aclosing, contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

from agents import AgentOutputSchemaBase, ModelBehaviorError, ModelResponse, ModelSettings
from agents.exceptions import AgentsException
from agents.models.interface import Model, ModelTracing
from openai import OpenAIError
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseIncompleteEvent,
    ResponseOutputItemDoneEvent,
    ResponseOutputMessage,
    ResponseTextDeltaEvent,
)

from agent.errors import ModelError, ModelUnavailable
from agent.models.ask import RequestedSchema
from agent.models.call_record import finish_of, recorded_call
from agent.models.choice.choose import ChosenModel
from agent.models.choice.fallback import (
    both_failed,
    changes_over,
    pause_before,
    tries_again,
    without_provider_state,
)
from agent.models.failures import NO_ANSWER, refuses_images
from agent.models.wire.incoming import completed, message_item
from agent.turn.client.our_calls import states_of
from agent.turn.client.parameters import model_settings
from agent.turn.output.answer import ANSWER_SCHEMA, PICTURE_SCHEMA
from agent.turn.output.streamed_text import message_is_closed
from agent.types import Usage
from agent.types.client import ClientTurn
from memory.text import storable
from prompts import read
from tools.registry import nested_too_deep

REST_SECONDS = 20.0
"""Seconds that a streamed answer may go on after its message is complete; then what has come is the answer.
Small models repeat themselves there until their window is full."""


class TurnModel(Model):
    """The chosen model as one turn uses it."""

    def __init__(
        self, chosen: ChosenModel, max_calls: int, client: ClientTurn, *, as_text: bool = False
    ) -> None:
        """Expect the answer as the JSON object of the client's form if there is one, with `as_text` as plain
        text, else in our own form."""
        self._chosen = chosen
        self._client = client
        self._blinded = False
        """Whether this call is tried without images, because the model has just refused them."""
        self._as_text = as_text
        self._failed: tuple[ChosenModel, Exception] | None = None
        """The first model and its last error; None until the second model is asked."""
        self._items_before = 0
        """Number of input items when the second model was first asked."""
        self._tries = 0
        """How often the current call was tried."""
        self._max_calls = max_calls
        self._ids: set[str] = set()
        self.states: dict[str, str] = {}
        """Provider data to send back with each tool call, by the call's id."""
        self._counted: list[Usage] = []
        self.cut = False
        """Whether the last answer was cut off."""
        self.calls = 0
        """Number of answered calls. A last call that is repeated without tools counts once."""

    @property
    def usage(self) -> Usage:
        """Tokens of all calls; zeros if the server left out any count."""
        counted = [(one.input, one.output, one.cached) for one in self._counted]
        whole = all(input or output for input, output, _ in counted)
        return Usage(*map(sum, zip(*counted, strict=True))) if whole and counted else Usage()

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
        while True:
            asked = self._asked(system_instructions, input, model_settings, tools)
            try:
                response = await self._response(asked, handoffs, tracing, **rest)
                if again := asked.again(response.output):
                    response = await self._response(again, handoffs, tracing, **rest)
                response.output = self._settle(response.output, asked)
                return response
            except Exception as error:
                await self._next_try(error, input)

    async def _response(self, asked: "_Asked", *more: Any, **rest: Any) -> ModelResponse:
        with asked.recorded(self._chosen.name) as call, _readable(self._chosen):
            response = await self._chosen.model.get_response(*asked[:-1], *more, **rest)
            call.answered(response.output, response.usage)
        self._count(response.output, response.usage)
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
        while True:
            asked, shown = self._asked(system_instructions, input, model_settings, tools), False
            try:
                async with aclosing(self._streamed(asked, handoffs, tracing, **rest)) as events:
                    async for event in events:
                        shown = shown or isinstance(event, ResponseTextDeltaEvent)
                        yield event
                return
            except Exception as error:
                if shown:  # one reply must not mix the text of two models
                    raise
                await self._next_try(error, input)

    async def _streamed(self, first: "_Asked", *more: Any, **rest: Any) -> AsyncGenerator[Any]:
        asked: _Asked | None = first
        while asked:
            again = None
            async with aclosing(self._events(asked, *more, **rest)) as events:
                async for event in events:
                    if isinstance(event, ResponseCompletedEvent):
                        if again := asked.again(event.response.output):
                            continue
                        event.response.output = self._settle(event.response.output, asked)
                    yield event
            asked = again

    async def _events(self, asked: "_Asked", *more: Any, **rest: Any) -> AsyncGenerator[Any]:
        events = self._chosen.model.stream_response(*asked[:-1], *more, **rest)
        done, written, ends = list[Any](), "", None
        begun = whole = False
        try:
            with asked.recorded(self._chosen.name) as call, _readable(self._chosen):
                while not whole and (event := await _next(events, ends, written)) is not None:
                    if isinstance(event, ResponseOutputItemDoneEvent):
                        done.append(event.item)  # not passed on: the runner would use it with its original id
                        continue
                    if isinstance(event, ResponseIncompleteEvent):  # a token limit ended it
                        event = completed(event.response)
                    if isinstance(event, ResponseCompletedEvent):
                        output = event.response.output or done
                        if not (begun or output):  # the chat adapter also completes an empty stream
                            raise ModelBehaviorError(NO_ANSWER)
                        call.answered(output, event.response.usage)
                        self._count(output, event.response.usage)
                        event.response.output = output
                        whole = True
                    if isinstance(event, ResponseTextDeltaEvent) and event.delta:
                        call.began()
                        written += event.delta
                        if ends is None and '"' in event.delta and message_is_closed(written):
                            ends = asyncio.get_running_loop().time() + REST_SECONDS
                    begun = True
                    yield event
                if not whole:
                    raise ModelBehaviorError(NO_ANSWER)
        finally:
            if isinstance(events, AsyncGenerator):  # release the connection, even if the reader stops early
                await events.aclose()

    @property
    def name(self) -> str:
        """Name of the model that is asked now."""
        return self._chosen.name

    @property
    def sees(self) -> bool:
        """Whether the model that is asked now gets images."""
        return self._chosen.sees

    def _leaves_out(self, error: Exception) -> bool:
        """Return whether to ask again without images, because this error may refuse them. From then on the
        model counts as one that sees no images. If it fails without them too, it counts as seeing again."""
        fit = self._chosen.fit
        if fit is None or not self._client.pictures_optional:
            return False
        if fit.sees and refuses_images(error):
            self._blinded, fit.sees = True, False
            return True
        if self._blinded:
            self._blinded, fit.sees = False, True
        return False

    async def _next_try(self, error: Exception, items: Any) -> None:
        """Wait before the same model is asked again, or change to the second model. Raises the error if
        neither applies."""
        if self._leaves_out(error):
            return
        self._tries += 1
        if tries_again(self._chosen, error, self._tries):
            await asyncio.sleep(pause_before(error, self._tries))
            return
        if self._failed is not None:
            raise both_failed(*self._failed, error) from error
        if not changes_over(self._chosen, error):
            raise error
        assert self._chosen.fallback is not None
        self._tries = 0
        self._failed, self._chosen = (self._chosen, error), self._chosen.fallback
        self._items_before = len(items)

    def _count(self, output: Sequence[Any], usage: Any) -> None:
        details = getattr(usage, "input_tokens_details", None)  # a server may send no counts
        counts = (usage, "input_tokens"), (usage, "output_tokens"), (details, "cached_tokens")
        self._counted.append(Usage(*(getattr(of, name, 0) or 0 for of, name in counts)))
        withheld = any(getattr(p, "refusal", None) for i in output for p in getattr(i, "content", None) or ())
        self.cut = finish_of(output) in ("length", "content_filter") and not withheld

    @property
    def last_output(self) -> int:
        """Tokens of the last answer; 0 if the server did not count them."""
        return self._counted[-1].output if self._counted else 0

    @property
    def enforced(self) -> bool:
        """Whether the server enforces the JSON form that a client wants."""
        form = self._client.form
        schema = self._chosen.structured == "schema" and (self._chosen.schema_beside_tools or self._last)
        return schema and bool(form and form.schema and form.strict)

    def _schema(self, tools: list[Any]) -> AgentOutputSchemaBase | None:
        form, fit = self._client.form, self._chosen.fit
        as_text = self._as_text and form is None
        offered = tools and not self._chosen.schema_beside_tools and (fit is None or fit.tools)
        if as_text or self._chosen.structured != "schema" or offered:
            return None
        if form is None:
            schema = PICTURE_SCHEMA if self._client.pictures else ANSWER_SCHEMA
            return schema if self._chosen.bounded else schema.without_bounds
        return RequestedSchema(form.name, form.schema, strict=form.strict) if form.schema else None

    @property
    def _last(self) -> bool:
        return self.calls >= self._max_calls - 1

    def _asked(self, system: str | None, input: Any, settings: ModelSettings, tools: list[Any]) -> "_Asked":
        if self._failed:
            input = [*without_provider_state(input[: self._items_before]), *input[self._items_before :]]
            own = self._chosen.settings.resolve(model_settings(self._client, self._chosen.source))
            settings = replace(own, tool_choice=settings.tool_choice)
        # A required call is one of a client's tool, which ends the turn.
        if settings.tool_choice not in (None, "auto", "none") or not self._last:
            return _Asked(system, input, settings, tools, self._schema(tools))
        # The system message and the tools do not change, so that servers can reuse their prompt cache.
        settings = replace(settings, tool_choice="none" if tools else None, parallel_tool_calls=None)
        input = [*input, {"role": "user", "content": read("last_call")}]
        return _Asked(system, input, settings, tools, self._schema([]), last=True)

    def _settle(self, output: list[Any], asked: "_Asked") -> list[Any]:
        """Count the call and repair its tool calls; drop them in the last call.

        Some servers leave ids empty or reuse them, which the runner rejects. Some models call tools
        that they were not offered.
        """
        self.calls += 1
        self._tries = 0
        self._blinded = False
        if asked.last:
            return [item for item in output if not isinstance(item, ResponseFunctionToolCall)]
        for item in tool_calls(output):
            item.name = storable(item.name)
            if not item.call_id or item.call_id in self._ids:
                item.call_id = f"call{len(self._ids):05}"
            self._ids.add(item.call_id)
            if nested_too_deep(item.arguments):  # the runner could not parse them
                item.arguments = '"nested too deep"'
        self.states |= states_of(output, self.name)
        return output


class _Asked(NamedTuple):
    """The arguments of a model call, in the order of the SDK's interface."""

    system: str | None
    input: Any
    settings: ModelSettings
    tools: list[Any]
    schema: AgentOutputSchemaBase | None
    last: bool = False

    def again(self, output: Sequence[Any]) -> "_Asked | None":
        """Return the last call once more, without tools, if its answer has no text; else None."""
        said = [item for item in output if isinstance(item, ResponseOutputMessage) and item.content]
        if said or not (self.last and self.tools):
            return None
        return self._replace(tools=[], settings=replace(self.settings, tool_choice=None))

    def recorded(self, model: str) -> AbstractContextManager[Any]:
        return recorded_call(model, self.system, self.input, self.tools, self.settings, self.schema)


async def _next(events: AsyncIterator[Any], ends: float | None, written: str) -> Any:
    """Return the next event; None after the last. At the time `ends` of the loop's clock, return the text
    `written` so far as the complete answer."""
    try:
        async with asyncio.timeout_at(ends) as limit:
            return await anext(events, None)
    except TimeoutError:
        if not limit.expired():
            raise
    return completed(Response.construct(id="", output=[message_item(written)], usage=None))


@contextmanager
def _readable(chosen: ChosenModel) -> Iterator[None]:
    """Convert any error that an adapter raises on a malformed response (HTML, half a line) to
    ModelBehaviorError, and any error of a program's own model to ModelUnavailable."""
    try:
        yield
    except (OpenAIError, AgentsException, ModelError):
        raise
    except Exception as error:
        what = type(error).__name__
        if chosen.brought:
            raise ModelUnavailable(f"{chosen.name} failed: {what}: {str(error)[:300]}") from error
        raise ModelBehaviorError(f"{NO_ANSWER} ({what})") from error


def tool_calls(output: Sequence[Any]) -> list[ResponseFunctionToolCall]:
    return [item for item in output if isinstance(item, ResponseFunctionToolCall)]
