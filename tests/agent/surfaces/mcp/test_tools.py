"""What each tool does, and for whom."""

from typing import Any

from hachi import Companion


async def test_a_fact_is_remembered_found_corrected_and_forgotten(pet: Companion, agent: Any) -> None:
    async with agent(pet, "ana") as ana:
        kept = await ana.call(
            "remember",
            content="Ana's boat is moored in Brest until spring",
            subjects=["boat", "Brest"],
            ttl="7d",
            importance=0.8,
            type="insight",
        )
        assert (kept["action"], kept["expires_at"]) == ("add", "2026-11-28T09:30:00Z")
        [found] = (await ana.call("search_memories", query="where is the boat moored?"))["memories"]
        assert found == {
            "id": kept["id"][:8],
            "kind": "memory",
            "content": "Ana's boat is moored in Brest until spring",
            "at": "Sat 21 Nov 2026 09:30",
            "subjects": ["boat", "brest"],
            "expires": "Sat 28 Nov 2026 09:30",
        }

        old = await ana.call("remember", content="Ana's boat is called Mouette")
        new = await ana.call("remember", content="Ana's boat is called Sterne", replaces=old["id"][:8])
        assert new["action"] == "replace"
        gone = await ana.call("forget", id=new["id"])
        assert gone["content"] == "Ana's boat is called Sterne"
        assert new["id"] in gone["memories"]
        assert (gone["messages"], gone["replies"]) == (0, 0)
        assert await ana.knows() == ["Ana's boat is moored in Brest until spring"]
        assert "there is no memory" in await ana.refused("forget", id=new["id"])


async def test_what_was_forgotten_by_mistake_is_brought_back(shared: Companion, agent: Any) -> None:
    said = {"author": "ida", "text": "my locker code is 8315", "sent_at": shared.clock()}
    await shared.conversations.import_messages([said], user="ida")
    async with agent(shared, "ida") as ida:
        [found] = (await ida.call("search_memories", query="locker code"))["memories"]
        [id] = found["ids"]
        task = (await ida.call("update_task", description="Paint the locker", status="open"))["task"]["id"]
        assert (await ida.call("forget", id=task, kind="task"))["content"] == "Paint the locker"
        assert "to forget; list what there is" in await ida.refused("forget", id=task, kind="task")
        gone = await ida.call("forget_message", id=id)
        assert (gone["memories"], gone["content"], gone["messages"]) == ([], "my locker code is 8315", 1)
        assert (await ida.call("search_memories", query="locker code"))["memories"] == []
        assert (await ida.call("undo_forget", id=gone["undo_id"]))["messages"] == 1
        [again] = (await ida.call("search_memories", query="locker code"))["memories"]
        assert again["ids"] == [id]
        assert "the time for it is over" in await ida.refused("undo_forget", id=gone["undo_id"])


async def test_nothing_private_is_told_in_a_place(shared: Companion, agent: Any) -> None:
    async with (
        agent(shared, "fay") as alone,
        agent(shared, "fay", "acme/general") as fay,
        agent(shared, "gus", "acme/general") as gus,
    ):
        private = await alone.call("remember", content="Fay looks for another job")
        public = await fay.call("remember", content="Fay leads the harbour project")
        await alone.call("update_task", description="write the application")
        assert await fay.knows() == await gus.knows() == ["Fay leads the harbour project"]
        assert (await fay.call("list_tasks"))["tasks"] == []
        here = f"there is no memory '{private['id']}' here; search_memories shows the ids"
        assert await fay.refused("forget", id=private["id"]) == here
        assert await gus.refused("remember", content="Fay has no job", replaces=private["id"]) == here
        assert "stated by somebody else" in await gus.refused("forget", id=public["id"])


async def test_tasks_are_made_changed_and_finished(shared: Companion, agent: Any) -> None:
    await shared.people.set_context("timezone", "Europe/Paris", user="hal")
    async with agent(shared, "hal") as hal:
        made = await hal.call("update_task", description="paint the boat", due="2026-11-27")
        assert made["action"] == "made"
        assert made["task"]["due"] == "2026-11-27T09:00:00+01:00"
        await hal.call("update_task", id=made["task"]["id"][:8], due="never", status="in_progress")
        [task] = (await hal.call("list_tasks"))["tasks"]
        assert (task["id"], task["description"]) == (made["task"]["id"], "paint the boat")
        assert (task["status"], task["due"]) == ("in_progress", None)
        await hal.call("update_task", description="paint", status="done")
        assert (await hal.call("list_tasks"))["tasks"] == []
        assert len((await hal.call("list_tasks", finished=True))["tasks"]) == 1
        assert "no task" in await hal.refused("update_task", id="a" * 37)


async def test_documents_are_searched(shared: Companion, agent: Any) -> None:
    await shared.documents.add("travel.md", "# Travel\n\nThe office pays for train tickets.", user="ivy")
    async with agent(shared, "ivy") as ivy:
        [passage] = (await ivy.call("search_knowledge", query="who pays for train tickets?"))["passages"]
    assert (passage["source"], passage["text"]) == ("travel.md", "The office pays for train tickets.")


async def test_arguments_are_taken_as_agents_write_them(pet: Companion, agent: Any) -> None:
    async with agent(pet, "lea") as lea:
        kept = await lea.call(
            "remember", content="Lea sails", subjects="boat, sea", importance="0.9", type=None, ttl=None
        )
        assert kept["action"] == "add"
        [found] = (await lea.call("search_memories", query="sails", limit=5.0, subjects=None))["memories"]
        assert found["subjects"] == ["boat", "sea"]
        assert (await lea.call("search_memories", query="sails", limit=None, subjects="sea"))["memories"]
        assert "limit" in await lea.refused("search_memories", query="sails", limit="many")
