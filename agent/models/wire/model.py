"""Call a language model over one of OpenAI's two APIs, whichever server runs it."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import httpx2
import openai
from agents import ModelBehaviorError, ModelResponse, Usage
from agents.models.interface import Model
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseInProgressEvent,
    ResponseReasoningTextDeltaEvent,
    ResponseTextDeltaEvent,
    ResponseUsage,
)
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails

from agent.models.failures import NO_ANSWER
from agent.models.wire.errors import ServerError, TooLong, too_long
from agent.models.wire.fit import Fit
from agent.models.wire.incoming import Answer, ChatAnswer, ResponsesAnswer, completed, pieces
from agent.models.wire.out import Request, chat_body, responses_body, without_pictures

MOST_TRIES = 8
"""How often one call is tried if the server refuses field after field."""


@dataclass(eq=False)
class WireModel(Model):
    """Makes each call without the SDK's adapters: these validate what servers send, drop the reason why an
    answer ended, and decide by the names of models."""

    name: str
    client: openai.AsyncOpenAI
    api: str
    fit: Fit

    async def get_response(self, *arguments: Any, **more: Any) -> ModelResponse:
        response = None
        async with aclosing(self._answer(_request(arguments, stream=False))) as events:
            async for event in events:
                response = event.response if isinstance(event, ResponseCompletedEvent) else None
        assert response is not None, "the last event has the response"
        usage = Usage(requests=1, **dict(response.usage or {}))
        return ModelResponse(output=response.output, usage=usage, response_id=None)

    async def stream_response(self, *arguments: Any, **more: Any) -> AsyncIterator[Any]:
        async with aclosing(self._answer(_request(arguments, stream=True))) as events:
            async for event in events:
                yield event

    async def _answer(self, request: Request) -> AsyncGenerator[Any]:
        """Yield an event for each piece of the answer, and one with the whole. Ask again if the server
        refuses a field that is not needed, or if our limit cuts the answer before its first word."""
        repeated = False
        for tries_left in reversed(range(MOST_TRIES)):
            body = self.fit.fitted(self._body(request), repeated)
            answer = ChatAnswer() if self.api == "chat" else ResponsesAnswer()
            try:
                async with aclosing(self._events(body, answer)) as events:
                    async for event in events:
                        yield event
            except openai.APIStatusError as error:
                if too_long(error):
                    raise TooLong(error, self.fit) from error
                if answer.text or not tries_left or not self.fit.do_without(error, body):
                    raise
                continue
            answer.end([tool.name for tool in request.tools])
            if repeated or not self.fit.too_short(answer, request.settings.max_tokens):
                break
            repeated = True
        yield _completed(answer)

    def _body(self, request: Request) -> dict[str, Any]:
        request = request if self.fit.sees else request._replace(items=without_pictures(request.items))
        if self.api == "responses":
            return responses_body(self.name, request)
        return chat_body(self.name, request, limit_name=self.fit.limit_name, short_ids=self.fit.short_ids)

    async def _events(
        self, body: dict[str, Any], answer: ChatAnswer | ResponsesAnswer
    ) -> AsyncGenerator[Any]:
        """Yield the text as it comes, and an event "at work" for each piece without text. Raises OpenAIError,
        and ModelBehaviorError if there is no answer."""
        path = "/chat/completions" if self.api == "chat" else "/responses"
        unread: Any = {"cast_to": httpx2.Response, "stream": True, "stream_cls": openai.AsyncStream[Any]}
        response: httpx2.Response = await self.client.post(path, body=body, **unread)
        try:
            with _translated(response):
                async with aclosing(pieces(response.aiter_bytes())) as read:
                    async for piece in read:
                        text = self._read(answer, piece, response)
                        if answer.thought:
                            yield _thought_event(answer.thought)
                        yield _text_event(text) if text else _at_work()
        finally:
            await response.aclose()
        if not answer.begun:
            raise ModelBehaviorError(NO_ANSWER)

    def _read(self, answer: ChatAnswer | ResponsesAnswer, piece: dict[str, Any], response: Any) -> str:
        try:
            return answer.add(piece)
        except ServerError as error:
            request = response.request
            if not error.status:
                raise openai.APIError(str(error), request, body=error.body) from error
            as_status = httpx2.Response(error.status, headers=response.headers, request=request)
            raise self.client._make_status_error(str(error), body=error.body, response=as_status) from error


def _request(arguments: tuple[Any, ...], *, stream: bool) -> Request:
    system, input, settings, tools, schema, *_ = arguments
    items = [{"role": "user", "content": input}] if isinstance(input, str) else input
    return Request(system, items, settings, tools, schema, stream)


@contextmanager
def _translated(response: httpx2.Response) -> Iterator[None]:
    try:
        yield
    except httpx2.TimeoutException as error:
        raise openai.APITimeoutError(request=response.request) from error
    except httpx2.HTTPError as error:
        raise openai.APIConnectionError(request=response.request) from error


@cache
def _at_work() -> ResponseInProgressEvent:
    """Return the event that says nothing. It is made on first use, since that takes 40 ms."""
    return ResponseInProgressEvent.construct(type="response.in_progress", sequence_number=0)


_WHERE: Any = {"content_index": 0, "item_id": "message", "output_index": 0, "sequence_number": 0}


def _text_event(text: str) -> ResponseTextDeltaEvent:
    kind: Any = "response.output_text.delta"
    return ResponseTextDeltaEvent.construct(type=kind, delta=text, logprobs=[], **_WHERE)


def _thought_event(text: str) -> ResponseReasoningTextDeltaEvent:
    kind: Any = "response.reasoning_text.delta"
    return ResponseReasoningTextDeltaEvent.construct(type=kind, delta=text, **_WHERE)


def _completed(answer: Answer) -> ResponseCompletedEvent:
    return completed(Response.construct(id="response", output=answer.items, usage=_usage(answer)))


def _usage(answer: Answer) -> ResponseUsage | None:
    """Return the server's count of tokens, under either API's names; None if it sent none."""
    input = _number(answer.usage, "prompt_tokens", "input_tokens")
    output = _number(answer.usage, "completion_tokens", "output_tokens")
    if not (input or output):
        return None
    details = [answer.usage.get(name) or {} for name in ("prompt_tokens_details", "input_tokens_details")]
    cached = max(_number(one, "cached_tokens") for one in details if isinstance(one, dict))
    return ResponseUsage.construct(
        input_tokens=input,
        output_tokens=output,
        total_tokens=input + output,
        input_tokens_details=InputTokensDetails.construct(cached_tokens=cached, cache_write_tokens=0),
        output_tokens_details=OutputTokensDetails.construct(reasoning_tokens=0),
    )


def _number(fields: Any, *names: str) -> int:
    values = (fields.get(name) for name in names)
    return next((int(value) for value in values if isinstance(value, int | float) and value == value), 0)
