"""Two accounts of one person are linked by a code that one is given and that is typed on the other."""

import asyncio
from collections import Counter
from datetime import timedelta

import pytest

from memory.audience import GLOBAL, PRIVATE, Place, user_key
from memory.people import links as module
from memory.people.links import LENGTH, LETTERS, MOST_PLACES, MOST_WRONG, Links, NotLinked
from memory.sql.tables import link_codes, links
from tests.memory.conftest import Stack

WRONG = "22222-22222"
GENERAL = Place.parse("acme/general")


@pytest.fixture
def accounts(stack: Stack) -> Links:
    return Links(stack.database)


async def linked(stack: Stack, accounts: Links, giver: str = "ana", typist: str = "ana on slack") -> None:
    await accounts.link(await accounts.code(giver, stack.clock.now), typist, stack.clock.now)


async def test_linked_accounts_read_each_others_in_private_and_nothing_more_in_a_place(
    stack: Stack, accounts: Links
) -> None:
    assert await accounts.of("ana") == ()
    await linked(stack, accounts)
    assert await accounts.of("ana") == ("ana on slack",)
    assert await accounts.of("ana on slack") == ("ana",)
    assert await accounts.of("ben") == ()
    both = {"user:ana", "user:ana on slack", GLOBAL}
    for one in ("ana", "ana on slack"):
        assert (await accounts.audience(one, PRIVATE)).keys == both
    assert (await accounts.audience("ana", GENERAL)).keys == {"place:acme/general", "place:acme", GLOBAL}


async def test_a_code_links_once_within_ten_minutes_however_it_is_typed(
    stack: Stack, accounts: Links
) -> None:
    code = await accounts.code("ana", stack.clock.now)
    assert await accounts.giver(code, "ben", stack.clock.now) == "ana", "to ask before"
    typed = f" {code.lower().replace('-', ' ')} "
    assert await accounts.link(typed, "ana on slack", stack.clock.now) == ("ana",)
    with pytest.raises(NotLinked, match="used"):
        await accounts.link(code, "ben", stack.clock.now)
    late = await accounts.code("ana", stack.clock.now)
    stack.clock.advance(minutes=10)
    with pytest.raises(NotLinked, match="older than ten minutes"):
        await accounts.link(late, "ben", stack.clock.now)
    earlier, later = [await accounts.code("ana", stack.clock.now) for _ in range(2)]
    with pytest.raises(NotLinked, match="wrong, used or older"):
        await accounts.link(earlier, "ben", stack.clock.now)
    assert await accounts.link(later, "ben", stack.clock.now) == ("ana", "ana on slack")


async def test_of_several_who_type_a_code_at_once_one_is_linked(stack: Stack, accounts: Links) -> None:
    code = await accounts.code("ana", stack.clock.now)
    tries = [Links(stack.database).link(code, f"friend {n}", stack.clock.now) for n in range(5)]
    done = await asyncio.gather(*tries, return_exceptions=True)
    assert Counter(type(one) for one in done) == {tuple: 1, NotLinked: 4}
    assert len(await accounts.of("ana")) == 1


async def test_codes_are_not_to_be_guessed_nor_read_in_the_database(stack: Stack, accounts: Links) -> None:
    codes = {await accounts.code("ana", stack.clock.now) for _ in range(200)}
    assert len(codes) == 200
    assert len(LETTERS) ** LENGTH > 2**49
    [row] = await stack.database.rows(link_codes.select())
    assert not any(code.replace("-", "") in str(row) for code in codes)
    for _ in range(MOST_WRONG):
        with pytest.raises(NotLinked, match="wrong, used or older"):
            await accounts.giver(WRONG, "mallory", stack.clock.now)
    right = await accounts.code("ana", stack.clock.now)
    for _ in range(2):
        await accounts.code("mallory", stack.clock.now)
        with pytest.raises(NotLinked, match="wait ten minutes"):
            await accounts.link(right, "mallory", stack.clock.now)
    assert await accounts.of("mallory") == ()
    stack.clock.advance(minutes=10)
    right = await accounts.code("ana", stack.clock.now)
    assert await accounts.link(right, "mallory", stack.clock.now) == ("ana",)


async def test_it_says_why_accounts_are_not_linked(stack: Stack, accounts: Links) -> None:
    code = await accounts.code("ana", stack.clock.now)
    with pytest.raises(NotLinked, match="created on this account"):
        await accounts.link(code, "ana", stack.clock.now)
    await accounts.link(code, "ana on slack", stack.clock.now)
    again = await accounts.code("ana", stack.clock.now)
    with pytest.raises(NotLinked, match="linked already"):
        await accounts.link(again, "ana on slack", stack.clock.now)
    await linked(stack, accounts, "ben", "ben on slack")
    with pytest.raises(NotLinked, match="unlink one of them first"):
        await accounts.link(again, "ben", stack.clock.now)
    assert set(await accounts.of("ana")) == {"ana on slack"}


async def test_an_account_that_is_parted_reads_nothing_of_the_others_at_once_in_any_process(
    stack: Stack, accounts: Links
) -> None:
    elsewhere = Links(stack.database)
    await linked(stack, accounts)
    await linked(stack, accounts, "ana", "ana by http")
    assert await elsewhere.of("ana") == ("ana by http", "ana on slack")
    code = await accounts.code("ana", stack.clock.now)
    assert await accounts.unlink("ana") == ("ana by http", "ana on slack")
    assert await elsewhere.of("ana") == ()
    assert await elsewhere.of("ana by http") == ("ana on slack",), "those stay linked"
    with pytest.raises(NotLinked, match="wrong, used or older"):
        await accounts.link(code, "ana by http", stack.clock.now)
    assert await accounts.unlink("ana by http") == ("ana on slack",)
    assert await stack.database.rows(links.select()) == [], "of nobody who is alone anything is kept"
    assert await accounts.unlink("ana") == ()


async def test_a_link_of_another_process_is_known_a_moment_later(
    stack: Stack, accounts: Links, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = Links(stack.database)
    assert await elsewhere.of("ana") == ()
    await linked(stack, accounts)
    monkeypatch.setattr(module.time, "monotonic", lambda now=module.time.monotonic: now() + module.NONE_FRESH)
    assert await elsewhere.of("ana") == ("ana on slack",)


async def test_places_where_somebody_wrote_come_with_the_newest_first(stack: Stack, accounts: Links) -> None:
    await linked(stack, accounts)
    for n in range(MOST_PLACES + 2):
        await stack.receive("hello", "ana", f"acme/{n}")
    await stack.receive("hello", "ana", "acme/1")
    await stack.receive("hello", "ana")
    await stack.receive("hello", "ben", "acme/board")
    await stack.receive("hello ana", "ana", "acme/0", role="assistant")
    besides, places = await accounts.with_places("ana")
    assert besides == {user_key("ana on slack"): "ana on slack"}
    newest = [1, *(n for n in range(MOST_PLACES + 1, 0, -1) if n != 1)]
    assert places == [Place.parse(f"acme/{n}") for n in newest[:MOST_PLACES]]


async def test_an_old_code_is_kept_no_longer(stack: Stack, accounts: Links) -> None:
    await accounts.code("ben", stack.clock.now)
    stack.clock.now += timedelta(minutes=10)
    await accounts.code("ana", stack.clock.now)
    assert {row.user_id for row in await stack.database.rows(link_codes.select())} == {"ana"}
