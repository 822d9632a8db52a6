"""What happens by itself over weeks: clean-up by settings, and what does not."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from agents.testing import ScriptedModel, assistant_message

from hachi import Companion, Settings


async def test_what_is_unimportant_and_long_unused_goes_and_nothing_else(tmp_path: Path) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    settings = Settings.load(home=tmp_path, embedder="bundled", unused_days=30)
    async with Companion.open(settings, clock=lambda: now, upkeep=False) as pet:
        await pet.remember("Ana hums in the shower", user="ana", importance=0.4)
        await pet.remember("Ana collects stamps", user="ana", importance=0.4)
        await pet.remember("Ana is allergic to nuts", user="ana", importance=0.9)
        now += timedelta(days=29)
        assert await pet.admin.tidy() == []
        await pet.search_memories("stamps", user="ana", limit=1)
        await pet.components.recall.note_uses()
        now += timedelta(days=2)
        assert [(one.memory.content, one.reason) for one in await pet.admin.preview_purge()] == [
            ("Ana hums in the shower", "unused")
        ]
        assert [one.memory.content for one in await pet.admin.tidy()] == ["Ana hums in the shower"]
        left = {memory.content for memory in await pet.memories.list(user="ana")}
        assert left == {"Ana collects stamps", "Ana is allergic to nuts"}


async def test_no_name_is_read_from_what_somebody_says(tmp_path: Path) -> None:
    settings = Settings.load(home=tmp_path, embedder="bundled")
    model = ScriptedModel([[assistant_message('{"message": "By bus, then.", "memories": []}')]])
    async with Companion.open(settings, model=model, upkeep=False) as pet:
        await pet.respond("I go by bus.", user="ana", settle=True)
        assert await pet.memories.list(user="ana") == []
        await pet.remember("ana is also called Annie", user="ana")
        await pet.remember("Annie plays the cello", user="ana")
        found = [hit.content for hit in await pet.search_memories("what does ana play?", user="ana")]
    assert "Annie plays the cello" in found
