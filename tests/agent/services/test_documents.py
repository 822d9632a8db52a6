"""Documents that are handed over, by those who have them in memory and not in a file."""

import pytest

from agent.errors import BadInput
from tests.agent.conftest import OpenPet

TRAVEL = "# Travel\n\nThe office pays for train tickets."


async def test_a_document_in_words_is_kept_under_its_name_and_found(open_pet: OpenPet) -> None:
    pet = await open_pet()
    taken = await pet.documents.add("travel.md", TRAVEL, user="ana")
    assert (taken.action, taken.document.path, taken.document.title) == ("added", "travel.md", "Travel")
    assert (taken.document.owner, taken.document.chunks) == ("user:ana", 1)
    [chunk] = await pet.documents.search("who pays for trains?", user="ana")
    assert (chunk.source, chunk.heading) == ("travel.md", "Travel")
    assert await pet.documents.search("who pays for trains?", user="ben") == []


UNREADABLE: list[tuple[str, str | bytes, str]] = [
    ("a.md", "", "a.md: it is empty"),
    ("a.md", "# Only a heading", "a.md: it holds headings and no text"),
    ("a.pdf", "no PDF", "a.pdf: it is a broken PDF"),
    ("a.bin", b"\x00\x01\x02\x03", "a.bin: it is binary data"),
    ("a.txt", b"x" * (32 * 2**20 + 1), "a.txt: it has 32 MB"),
    ("a/b.md", TRAVEL, "without a folder"),
]


async def test_what_cannot_be_read_is_told_and_not_kept(open_pet: OpenPet) -> None:
    pet = await open_pet()
    for name, content, why in UNREADABLE:
        with pytest.raises(BadInput, match=why):
            await pet.documents.add(name, content)
    assert await pet.documents.list(user="ana") == []
    await pet.documents.add("a.txt", "oars\x00 are of ash \ud83d")
    [chunk] = await pet.documents.search("oars", user="ana")
    assert chunk.text.startswith("oars are of ash")


async def test_an_id_means_the_document_that_has_it_whatever_another_is_called(open_pet: OpenPet) -> None:
    pet = await open_pet()
    first = await pet.documents.add("travel.md", TRAVEL)
    await pet.documents.add(first.document.id, "A trap.")
    [gone] = await pet.documents.remove(first.document.id)
    assert gone.path == "travel.md"
