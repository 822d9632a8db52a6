"""Everything of a person as one JSON document."""

import json
from pathlib import Path

import pytest
from waiting import turns_of_others

from hachi import Companion
from tests.agent.conftest import OpenPet


async def fill(pet: Companion, user: str) -> None:
    for said in (f"I am {user} and I ski", "my skis are red"):
        await pet.respond(said, user=user)
    await pet.respond("I wax the skis tomorrow", user=user, place="acme/general")
    await pet.tasks.update("wax the skis", user=user, place="acme/general")
    await pet.conversations.import_messages(
        [{"author": user, "text": "once upon a time", "sent_at": pet.clock()}], user=user, conversation="old"
    )
    await pet.settle()
    old = await pet.remember(f"{user} lives in Paris", user=user)
    await pet.memories.update(str(old.id), f"{user} lives in Lyon", user=user)
    await pet.people.set_context("role", f"nurse {user}", user=user, place="acme/general")


async def test_all_that_would_be_erased_is_in_it(
    open_pet: OpenPet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.services.transfer.export.AT_ONCE", 1)
    pet = await open_pet()
    await fill(pet, "ana")
    await fill(pet, "ben")
    (tmp_path / "paper.md").write_text("# Skis\n\nHow to wax them.")
    await pet.documents.add_files([tmp_path / "paper.md"], user="ana")

    whole = await pet.conversations.export(user="ana")

    assert json.loads(json.dumps(whole)) == whole
    assert (whole["format"], whole["version"], whole["user"], whole["place"]) == (
        "hachi-export",
        1,
        "ana",
        "dm",
    )
    assert whole["exported_at"] == pet.clock().isoformat()
    told = [memory["content"] for memory in whole["memories"]]
    assert told == [memory.content for memory in reversed(await pet.memories.list(user="ana"))]
    assert "ana lives in Lyon" in told
    assert [message["author"] for message in whole["messages"]] == ["ana", "hachi"] * 2
    assert [(talk["place"], talk["conversation"]) for talk in whole["conversations"]] == [
        ("acme/general", "place:acme/general"),
        ("dm", "old"),
    ]
    assert [task["place"] for task in whole["tasks"]] == ["acme/general"]
    assert {"place": "acme/general", "value": "nurse ana"}.items() <= whole["context"][0].items()
    assert {"was": "ana lives in Paris", "became": "ana lives in Lyon"}.items() <= whole["history"][0].items()
    assert [document["title"] for document in whole["documents"]] == ["Skis"]
    assert whole["summaries"]
    assert "ben" not in json.dumps(whole)

    await pet.people.erase(user="ana")
    whole = await pet.conversations.export(user="ana")
    assert not any(value for value in whole.values() if isinstance(value, list))


async def test_an_import_and_an_export_of_much_let_others_run(
    open_pet: OpenPet, monkeypatch: pytest.MonkeyPatch
) -> None:
    pet = await open_pet()
    lines = [{"author": "ana", "text": f"line {n}", "sent_at": pet.clock()} for n in range(2_000)]
    importing = pet.conversations.import_messages(lines, user="ana")
    assert await turns_of_others(importing, monkeypatch) > len(lines) / 100
    assert await turns_of_others(pet.conversations.export(user="ana"), monkeypatch) > len(lines) / 100
    assert len((await pet.conversations.export(user="ana"))["messages"]) == len(lines)
