"""What happens by itself over weeks: clean-up by settings, and what does not."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from hachi import Companion, Settings


async def test_what_is_unimportant_and_long_unused_goes_and_nothing_else(tmp_path: Path) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    settings = Settings.load(home=tmp_path, embedder="bundled", unused_days=30)
    async with Companion.open(settings, clock=lambda: now, periodic_jobs=False) as pet:
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
