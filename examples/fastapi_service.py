"""A FastAPI service with one companion for all requests.

    uvicorn fastapi_service:app --workers 2        (in this folder)

The workers share one home: what one remembers, the other finds at once.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from hachi import Companion, HachiError


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with Companion.open() as pet:
        app.state.pet = pet
        yield


app = FastAPI(lifespan=lifespan)


class Said(BaseModel):
    user: str
    text: str


def pet_of(request: Request) -> Companion:
    pet: Companion = request.app.state.pet
    return pet


@app.exception_handler(HachiError)
async def explain(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HachiError)
    headers = {"retry-after": str(int(error.retry_after))} if error.retry_after else None
    return JSONResponse({"error": str(error), "trace": error.trace_id}, error.status, headers)


@app.post("/say")
async def say(said: Said, request: Request) -> dict[str, str]:
    reply = await pet_of(request).respond(said.text, user=said.user, timeout=30)
    return {"reply": reply.message, "trace": reply.trace_id}


@app.post("/facts")
async def remember(said: Said, request: Request) -> dict[str, str | None]:
    decision = await pet_of(request).remember(said.text, user=said.user)
    return {"action": decision.action, "id": decision.id}


@app.get("/facts")
async def search(user: str, request: Request, query: str = "") -> list[str]:
    return [hit.content for hit in await pet_of(request).search_memories(query, user=user)]
