"""Answer `/api/users/{user}/accounts`: linked accounts, whose memories are shared in private."""

from typing import Annotated

from pydantic import Field
from starlette.responses import Response

from agent.surfaces.http.authentication import Pet
from agent.surfaces.http.limits import StrictBody
from agent.surfaces.http.openai_api.completion import example
from agent.surfaces.http.rest.users import User
from agent.surfaces.http.routes import api_routes

router = api_routes("/api/users/{user}/accounts", tag="a person")


class Code(StrictBody):
    """A code that was created for another account."""

    model_config = example({"code": "7KQ2M-X9RTB"})

    code: Annotated[str, Field(min_length=1, max_length=40)]


@router.get("")
async def list_accounts(user: User, pet: Pet) -> list[str]:
    """List the person's accounts that are linked with this one."""
    return await pet.people.accounts(user=user)


@router.post("/code", status_code=201)
async def make_code(user: User, pet: Pet, response: Response) -> Code:
    """Return a code that links another account with this one. It works once, for ten minutes. Whoever enters
    it from another account can read what is remembered about this one, so show it only to the person."""
    response.headers["cache-control"] = "no-store"
    return Code(code=await pet.people.link_code(user=user))


@router.post("")
async def link_account(user: User, body: Code, pet: Pet) -> list[str]:
    """Link this account with the one that created the code. If the code does not work, the status is 409 and
    the message says why. First ask the person whether the other account is theirs."""
    return await pet.people.link(body.code, user=user)


@router.delete("")
async def unlink_account(user: User, pet: Pet) -> list[str]:
    """Unlink this account from all others, which are returned."""
    return await pet.people.unlink(user=user)
