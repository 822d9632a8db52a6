"""Answer `/api/users/{user}/accounts`: linked accounts, which read each other in private."""

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
    """A code that another account was given."""

    model_config = example({"code": "7KQ2M-X9RTB"})

    code: Annotated[str, Field(min_length=1, max_length=40)]


@router.get("")
async def list_accounts(user: User, pet: Pet) -> list[str]:
    """List the person's accounts that are linked with this one."""
    return await pet.people.accounts(user=user)


@router.post("/code", status_code=201)
async def make_code(user: User, pet: Pet, response: Response) -> Code:
    """Return a code that links another account with this one, once, within ten minutes. Whoever sends it for
    another account reads what is remembered of this one: show it to the person alone."""
    response.headers["cache-control"] = "no-store"
    return Code(code=await pet.people.link_code(user=user))


@router.post("")
async def link_account(user: User, given: Code, pet: Pet) -> list[str]:
    """Link this account with the one that got the code. The status is 409 where the code does not link; the
    message says why. Ask the person first whether the other account is theirs."""
    return await pet.people.link(given.code, user=user)


@router.delete("")
async def unlink_account(user: User, pet: Pet) -> list[str]:
    """Part this account from those that it is linked with, which are returned."""
    return await pet.people.unlink(user=user)
