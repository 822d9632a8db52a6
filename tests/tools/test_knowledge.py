"""Looking into documents."""

from typing import Any


async def test_without_documents_nothing_is_found_and_that_is_said(turn: Any) -> None:
    found = await turn.call("search_knowledge", query="how to tie a bowline")

    assert (found["ok"], found["chunks"]) == (True, [])
    assert "no documents" in found["note"]
