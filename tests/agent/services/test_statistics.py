"""Figures of what happened, for each person and over all processes."""

from typing import Any

import pytest

from memory.errors import StoreUnavailable
from tests.agent.conftest import OpenPet, Rows


async def test_decisions_are_counted_where_they_happen(open_pet: OpenPet) -> None:
    one, other = await open_pet(), await open_pet()
    for pet, user in ((one, "ana"), (other, "ana"), (other, "ben")):
        await pet.remember("Ana skis", user=user)
    await other.components.figures.flush()

    figures = one.admin.statistics.figures
    assert (await figures.totals("ana"))["decided"] == 2
    everybody = await figures.totals(None)
    assert (everybody["add"], everybody["known"]) == (2, 1)
    assert everybody.get("searches", 0) == 0, "those of models alone are counted, by what they use"
    assert await figures.totals("nobody") == {}


async def test_figures_wait_while_the_database_is_away_and_go_with_their_person(
    open_pet: OpenPet, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    pet = await open_pet()
    await pet.remember("Ana skis", user="ana")
    figures = pet.components.figures

    def away(*_: Any) -> Any:
        raise StoreUnavailable("away")

    with monkeypatch.context() as patch:
        patch.setattr(pet.components.database, "write", away)
        with pytest.raises(StoreUnavailable):
            await figures.flush()
    assert (await figures.totals("ana"))["add"] == 1
    await pet.remember("Ana rows", user="ana")

    await pet.people.erase(user="ana")
    await figures.flush()
    assert rows("SELECT * FROM figures") == []
