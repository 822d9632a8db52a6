"""Clean-up of old messages: they go with what was written from them, and what they stated stays."""

from typing import Any

from hachi import Companion


async def test_old_messages_are_deleted_and_facts_stay(open_pet: Any, clock: Any, rows: Any) -> None:
    pet: Companion = await open_pet(message_days=30)
    await pet.respond("I broke my shoulder on January 10", user="ana", settle=True)
    await pet.settle()
    [summary] = [row["summary"] for row in rows("SELECT summary FROM active_conversations")]
    assert "shoulder" in summary
    clock.advance(days=29)
    await pet.respond("I like tea", user="ana", settle=True)
    await pet.admin.tidy()
    assert len(rows("SELECT * FROM messages")) == 4
    clock.advance(days=2)
    await pet.admin.tidy()
    await pet.settle()
    assert [row["text"] for row in rows("SELECT text FROM messages WHERE role = 'user'")] == ["I like tea"]
    assert "shoulder" not in str(rows("SELECT summary FROM active_conversations"))
    assert any("shoulder" in memory.content for memory in await pet.memories.list(user="ana"))
    assert rows("SELECT * FROM forgettings") == rows("SELECT * FROM hidden") == []
