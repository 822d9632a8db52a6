"""The application behind a real server on 127.0.0.1, over a companion whose model is scripted."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest
from agents import ModelResponse, Usage
from agents.models.interface import Model
from agents.testing import assistant_message

from agent import Companion
from agent.surfaces.http.application import app
from agent.surfaces.http.server import Server, address_of, listening, server_of
from memory.sql.keys import Key, Keys

OpenPet = Callable[..., Awaitable[Companion]]


class Says(Model):
    """Answers with what it is given, the last of it again and again; an exception is raised."""

    def __init__(self, *answers: Any) -> None:
        self.asked: list[Any] = []
        self._answers = list(answers) or ["I see."]

    async def get_response(self, *given: Any, **request: Any) -> ModelResponse:
        self.asked.append(request.get("input", given[1] if len(given) > 1 else None))
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        written = answer if answer.startswith("{") else json.dumps({"message": answer, "memories": []})
        return ModelResponse(output=[assistant_message(written)], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


@dataclass
class Site:
    """A server that runs."""

    url: str
    pet: Companion
    server: Server
    client: httpx2.AsyncClient
    """With no key."""
    keys: Keys = field(init=False)

    def __post_init__(self) -> None:
        self.keys = self.pet.services.keys

    async def key(
        self, user: str | None = None, *, admin: bool = False, name: str = "test"
    ) -> tuple[Key, str]:
        """Of that user, or of a service."""
        kind: Any = "service" if user is None else "user"
        return await self.keys.create(name, kind, user, admin, now=self.pet.clock())

    async def headers(self, user: str | None = None, *, admin: bool = False, **more: str) -> dict[str, str]:
        """With a new key of that user, or of a service."""
        _, secret = await self.key(user, admin=admin)
        return {"authorization": f"Bearer {secret}", **{k.replace("_", "-"): v for k, v in more.items()}}

    async def say(self, text: str, headers: dict[str, str] | None = None, **more: Any) -> httpx2.Response:
        body = {"model": "hachi", "messages": [{"role": "user", "content": text}], **more}
        return await self.client.post("/v1/chat/completions", json=body, headers=headers)


@asynccontextmanager
async def served(pet: Companion, *, loopback: bool) -> AsyncIterator[Site]:
    with listening("127.0.0.1", 0) as listener:
        server = server_of(app(pet, pet.settings, loopback=loopback))
        running = asyncio.create_task(server.serve(sockets=[listener]))
        url = address_of(listener)
        try:
            async with httpx2.AsyncClient(base_url=url, timeout=20, trust_env=False) as client:
                yield Site(url, pet, server, client)
        finally:
            server.should_exit = True
            await running


@pytest.fixture
async def serve(open_pet: OpenPet) -> AsyncIterator[Callable[..., Awaitable[Site]]]:
    """`await serve(says=…, loopback=True, **settings)`: a site, closed when the test ends. Its model is the
    rule-based one unless it is given what to say."""
    async with AsyncExitStack() as closing:

        async def opened(*, loopback: bool = False, says: Sequence[Any] = (), **given: Any) -> Site:
            if says:
                given["given"] = Says(*says)
            pet = await open_pet(**given)
            return await closing.enter_async_context(served(pet, loopback=loopback))

        yield opened
