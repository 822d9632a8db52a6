"""Looking into the documents the companion was given."""

from typing import Annotated, Any

from pydantic import Field

from tools.context import TurnContext


async def search_knowledge(
    turn: TurnContext,
    query: Annotated[str, Field(min_length=1, max_length=2000, description="what to look for, in words")],
    limit: Annotated[int, Field(ge=1, le=20, description="how many passages at most")] = 5,
) -> dict[str, Any]:
    """Search the documents that were given to you, for what is not about the people you talk with."""
    return {"chunks": [], "note": "no documents have been added yet"}
