"""Keys: made, shown once, looked up by their digest, revoked; on both databases."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select

from memory.errors import NotFound
from memory.sql.engine import Database
from memory.sql.keys import PREFIX, BadKey, Keys, digest
from memory.sql.tables import api_keys


@pytest.fixture
def keys(database: Database) -> Keys:
    return Keys(database)


async def test_a_key_is_found_by_its_secret_in_no_row(keys: Keys, database: Database, clock: Any) -> None:
    made, secret = await keys.create("laptop", "user", "ana", now=clock())
    assert secret.startswith(PREFIX)
    assert len(secret.removeprefix(PREFIX)) * 6 >= 256, "bits of chance"
    assert (made.name, made.kind, made.user, made.admin) == ("laptop", "user", "ana", False)
    assert await keys.check(secret, clock()) == made
    [row] = await database.rows(select(api_keys))
    assert digest(secret) in row
    assert secret not in map(str, row)


async def test_what_is_no_key_or_only_nearly_one_opens_nothing(keys: Keys, clock: Any) -> None:
    _, secret = await keys.create("laptop", "service", now=clock())
    nearly = (secret[:-1], secret + "x", secret.upper(), f" {secret}", digest(secret))
    none = ("", "hachi-", "hachi-nothing", "sk-123", "hachi-" + "x" * 10_000, "hachi-\x00", "hachi-\ud800")
    for wrong in (*nearly, *none):
        assert await keys.check(wrong, clock()) is None


async def test_a_revoked_key_opens_nothing_from_then_on(keys: Keys, clock: Any) -> None:
    """It still counts where the server asks whether there are keys."""
    assert not await keys.exist()
    made, secret = await keys.create("laptop", "user", "ana", now=clock())
    assert (await keys.revoke(made.id[:8], clock())).name == "laptop"
    assert await keys.exist()
    other, still = await keys.create("phone", "user", "ana", now=clock())

    assert await keys.check(secret, clock()) is None
    assert await keys.check(still, clock()) is not None
    revoked = {key.id: key.revoked_at for key in await keys.all()}
    assert revoked == {made.id: clock(), other.id: None}
    for id in (made.id, "nothing", "0" * 8, "", "%", "\x00" * 8, "𐍈" * 9):
        with pytest.raises(NotFound, match="hachi keys list"):
            await keys.revoke(id, clock())


async def test_its_last_use_is_known_to_the_minute(keys: Keys, database: Database, clock: Any) -> None:
    _, secret = await keys.create("laptop", "user", "ana", now=clock())
    begun = clock()
    await keys.check(secret, clock())
    writes = database.writes
    clock.advance(seconds=59)
    await keys.check(secret, clock())
    assert database.writes == writes
    assert (await keys.all())[0].last_used_at == begun

    clock.advance(seconds=1)
    await keys.check(secret, clock())
    assert (await keys.all())[0].last_used_at == begun + timedelta(minutes=1)


async def test_a_key_that_says_too_little_or_too_much_is_not_made(keys: Keys, clock: Any) -> None:
    await keys.create(
        "👩\u200d🚀", "user", "نیم\u200cفاصله", now=clock()
    )  # with joiners, which print nothing
    [made] = await keys.all()
    wrong: list[Any] = [("laptop", "user", None), ("laptop", "service", "ana"), ("lap\ntop", "service", None)]
    for name, kind, user in [*wrong, ("laptop", "user", "a\x00na")]:
        with pytest.raises(BadKey):
            await keys.create(name, kind, user, now=clock())
    assert await keys.all() == [made]
