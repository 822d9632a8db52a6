"""The application: what is reached over HTTP, put together."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI

from agent.companion import Companion
from agent.settings import Settings
from agent.surfaces.http import chat, health, knowledge, memories, people, refusals
from agent.surfaces.http.figures import Figures
from agent.surfaces.http.guard import Guard
from agent.surfaces.http.identity import Door
from agent.surfaces.http.rates import Rates

ABOUT = """A companion that remembers.

`POST /v1/chat/completions` is OpenAI's API: clients for it work, with this server as their base URL and one
of its keys. Errors are `{"error": {"message", "type", "param", "code"}}` everywhere.
"""


def app(pet: Companion, settings: Settings, *, loopback: bool = False) -> FastAPI:
    """An ASGI application over a companion that is open, and stays so for as long as this is served.

    With `loopback`, for a server that only this machine can reach, nobody needs a key until the first one is
    made.
    """
    figures = Figures()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        with figures.counting():
            yield

    made = FastAPI(
        title="Hachi",
        version=version("hachi"),
        description=ABOUT,
        docs_url=None,  # the page would be fetched from others' servers
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
        responses={
            "4XX": {
                "description": "What is wrong with the request",
                "content": {
                    "application/json": {
                        "example": refusals.body("no such key", "authentication_error", "invalid_api_key")
                    }
                },
            },
        },
    )
    made.state.pet = pet
    made.state.figures = figures
    made.state.door = Door(pet.services.keys, pet, loopback=loopback, rates=Rates(settings.http_rate))
    for part in (chat, memories, people, knowledge, health):
        made.include_router(part.router)
    refusals.add_to(made)
    made.add_middleware(Guard, longest=settings.http_max_body, seconds=settings.http_timeout)
    return made
