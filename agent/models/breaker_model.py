"""A model behind a breaker and a timeout, so that nobody waits for a silent server."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

from agents import ModelResponse
from agents.exceptions import ModelTimeoutError
from agents.models.interface import Model

from agent.errors import ModelUnavailable
from agent.models.failures import ExplainedFailure
from memory.process.breaker import Breaker, CircuitOpen


class BreakerModel(Model):
    def __init__(
        self,
        inner: Model,
        breaker: Breaker,
        blame: Callable[[Exception], str | None],
        timeout: float | None = None,
        slot: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
    ) -> None:
        """`timeout` is in seconds: for a whole answer, or for a stream until its first event and between
        any two. For `blame` see `Breaker.calling`. Time spent waiting for a `slot` of the server does not
        count."""
        self.inner = inner
        self._breaker = breaker
        self._blame = blame
        self._timeout = timeout
        self._slot = slot

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        async with self._slot():
            answer: ModelResponse = await self._through_breaker(
                lambda: self.inner.get_response(*args, **kwargs)
            )
        return answer

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """Yield the events. For the breaker, the first event counts as success."""
        events = self.inner.stream_response(*args, **kwargs)
        async with self._slot():
            try:
                event = await self._through_breaker(lambda: anext(events, None))
                while event is not None:
                    yield event
                    event = await self._in_time(anext(events, None))
            finally:
                if isinstance(
                    events, AsyncGenerator
                ):  # release the connection, even if the reader stops early
                    await events.aclose()

    async def _through_breaker(self, call: Callable[[], Any]) -> Any:
        try:
            with self._breaker.calling(self._blame):
                return await self._in_time(call())
        except CircuitOpen as error:
            failure = ExplainedFailure(str(error))
            failure.error = ModelUnavailable(str(error))
            failure.error.retry_after = error.seconds
            raise failure from error

    async def _in_time(self, answer: Any) -> Any:
        try:
            async with asyncio.timeout(self._timeout) as limit:
                return await answer
        except TimeoutError:
            if not limit.expired():
                raise
        raise ModelTimeoutError(self._timeout or 0.0)
