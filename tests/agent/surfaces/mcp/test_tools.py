"""What each tool does, and for whom."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from agent import Companion

OpenPet = Callable[..., Awaitable[Companion]]


async def test_what_is_remembered_is_found_again(open_pet: OpenPet, agent: Any) -> None:
    async with agent(await open_pet(), "ana") as ana:
        kept = await ana.call(
            "remember",
            content="Ana's boat is moored in Brest until spring",
            subjects="boat, Brest",
            ttl="7d",
            importance=0.8,
            type="insight",
        )
        assert kept["action"] == "add"
        assert kept["expires_at"] == "2026-11-28T09:30:00Z"
        [found] = (await ana.call("search_memories", query="where is the boat moored?"))["memories"]
    assert found["id"] == kept["id"]
    assert found["kind"] == "memory"
    assert found["subjects"] == ["boat", "brest"]
    assert (found["type"], found["importance"]) == ("insight", 0.8)
    assert 0 < found["score"] <= 1


async def test_subjects_and_limit_narrow_a_search(open_pet: OpenPet, agent: Any) -> None:
    async with agent(await open_pet(), "ana") as ana:
        await ana.call("remember", content="Ana has a red boat", subjects=["boat"])
        await ana.call("remember", content="Ana has a red bicycle", subjects=["bicycle"])
        tagged = await ana.call("search_memories", query="red", subjects=["bicycle"])
        one = await ana.call("search_memories", query="red", limit=1)
    assert [found["content"] for found in tagged["memories"]] == ["Ana has a red bicycle"]
    assert len(one["memories"]) == 1


async def test_a_long_message_is_found_shortened(open_pet: OpenPet, agent: Any) -> None:
    pet = await open_pet()
    said = {"author": "ana", "text": "the harbour " + "and so on " * 400, "sent_at": pet.clock()}
    await pet.import_messages([said], user="ana")
    async with agent(pet, "ana") as ana:
        [found] = (await ana.call("search_memories", query="harbour"))["memories"]
    assert (found["kind"], found["author"]) == ("message", "ana")
    assert len(found["content"]) < 1_600
    assert found["content"].endswith("more characters)")


async def test_a_fact_is_corrected_by_its_id(open_pet: OpenPet, agent: Any) -> None:
    async with agent(await open_pet(), "ana") as ana:
        old = await ana.call("remember", content="Ana's boat is called Mouette")
        new = await ana.call("remember", content="Ana's boat is called Sterne", replaces=old["id"][:8])
        assert new["action"] == "replace"
        assert await ana.knows() == ["Ana's boat is called Sterne"]


async def test_what_is_close_comes_back_with_a_decision(open_pet: OpenPet, agent: Any) -> None:
    async with agent(await open_pet(), "ana") as ana:
        old = await ana.call("remember", content="Ana's dentist is on Tuesday the 3rd")
        new = await ana.call("remember", content="Ana's dentist is on Friday the 6th")
    assert {"id": old["id"], "content": old["content"]} in new["close"]


async def test_a_ttl_that_cannot_be_read_does_not_lose_the_fact(open_pet: OpenPet, agent: Any) -> None:
    async with agent(await open_pet(), "ana") as ana:
        kept = await ana.call("remember", content="Ana has a red boat", ttl="a while")
        assert "use a form such as 7d" in kept["note"]
        assert await ana.knows() == ["Ana has a red boat"]


async def test_what_is_forgotten_is_gone(open_pet: OpenPet, agent: Any) -> None:
    async with agent(await open_pet(), "ana") as ana:
        kept = await ana.call("remember", content="Ana has a red boat")
        assert await ana.call("forget", id=kept["id"]) == {"id": kept["id"], "content": "Ana has a red boat"}
        assert await ana.knows() == []
        assert "there is no memory" in await ana.refused("forget", id=kept["id"])


async def test_two_people_do_not_see_each_others_memories(open_pet: OpenPet, agent: Any) -> None:
    pet = await open_pet()
    async with agent(pet, "ana") as ana, agent(pet, "ben") as ben:
        kept = await ana.call("remember", content="Ana has a red boat")
        await ana.call("update_task", description="paint the boat")
        assert await ben.knows() == []
        assert (await ben.call("search_memories", query="red boat"))["memories"] == []
        assert (await ben.call("list_tasks"))["tasks"] == []
        here = f"there is no memory '{kept['id']}' here; search_memories shows the ids"
        assert await ben.refused("forget", id=kept["id"]) == here
        assert await ben.refused("remember", content="Ana has no boat", replaces=kept["id"]) == here
        assert await ana.knows() == ["Ana has a red boat"]


async def test_nothing_private_is_told_in_a_place(open_pet: OpenPet, agent: Any) -> None:
    pet = await open_pet()
    async with (
        agent(pet, "ana") as alone,
        agent(pet, "ana", "acme/general") as ana,
        agent(pet, "ben", "acme/general") as ben,
        agent(pet, "ben", "acme/board") as elsewhere,
    ):
        private = await alone.call("remember", content="Ana looks for another job")
        shared = await ana.call("remember", content="Ana leads the harbour project")
        assert await ana.knows() == await ben.knows() == ["Ana leads the harbour project"]
        assert await elsewhere.knows() == []
        assert set(await alone.knows()) == {"Ana leads the harbour project", "Ana looks for another job"}
        assert "there is no memory" in await ana.refused("forget", id=private["id"])
        assert "is somebody else's" in await ben.refused("forget", id=shared["id"])
        await ana.call("forget", id=shared["id"])
        assert await ben.knows() == []


async def test_tasks_are_noted_changed_and_finished(open_pet: OpenPet, agent: Any) -> None:
    pet = await open_pet()
    await pet.set_context("timezone", "Europe/Paris", user="ana")
    async with agent(pet, "ana") as ana:
        made = await ana.call("update_task", description="paint the boat", due="2026-11-27")
        assert made["action"] == "made"
        assert made["task"]["due"] == "2026-11-27T09:00:00+01:00"
        await ana.call("update_task", id=made["task"]["id"][:8], due="never", status="in_progress")
        [task] = (await ana.call("list_tasks"))["tasks"]
        assert task == {"id": made["task"]["id"], "description": "paint the boat", "status": "in_progress"}
        await ana.call("update_task", description="paint", status="done")
        assert (await ana.call("list_tasks"))["tasks"] == []
        assert len((await ana.call("list_tasks", finished=True))["tasks"]) == 1


async def test_a_task_without_an_id_is_a_new_one(open_pet: OpenPet, agent: Any) -> None:
    async with agent(await open_pet(), "ana") as ana:
        for none in (None, "", "null", "new"):
            made = await ana.call("update_task", id=none, description="paint the boat", status=None, due=None)
            assert made["action"] == "made"
            same = await ana.call("update_task", id=made["task"]["id"], status="done", due=" ")
            assert same["task"]["status"] == "done"
        assert await ana.refused("update_task", id="a" * 37) == "id: string should have at most 36 characters"


async def test_a_task_of_a_private_talk_is_not_listed_in_a_place(open_pet: OpenPet, agent: Any) -> None:
    pet = await open_pet()
    async with agent(pet, "ana") as alone, agent(pet, "ana", "acme/general") as there:
        await alone.call("update_task", description="write the application")
        await there.call("update_task", description="book the room")
        assert [task["description"] for task in (await there.call("list_tasks"))["tasks"]] == [
            "book the room"
        ]
        assert len((await alone.call("list_tasks"))["tasks"]) == 2


async def test_documents_are_looked_up_as_far_as_they_may_be_read(
    open_pet: OpenPet, agent: Any, tmp_path: Path
) -> None:
    pet = await open_pet()
    (tmp_path / "travel.md").write_text("# Travel\n\n## Tickets\n\nThe office pays for train tickets.\n")
    await pet.add_knowledge([tmp_path / "travel.md"], user="ana")
    async with agent(pet, "ana") as ana, agent(pet, "ben") as ben:
        [passage] = (await ana.call("search_knowledge", query="who pays for train tickets?"))["passages"]
        assert "The office pays" in passage["text"]
        assert passage["source"].endswith("travel.md")
        assert str(tmp_path) not in passage["source"]
        assert (await ben.call("search_knowledge", query="who pays for train tickets?"))["passages"] == []


async def test_what_cannot_be_written_is_left_out(open_pet: OpenPet, agent: Any) -> None:
    async with agent(await open_pet(), "ana") as ana:
        kept = await ana.call("remember", content="Ana has a red boat\x00 in Brest")
        assert kept["content"] == "Ana has a red boat in Brest"
        assert (await ana.call("search_memories", query="red\x00 boat"))["memories"]
