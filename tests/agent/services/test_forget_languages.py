"""Forgetting in other languages than English: what goes, what stays and what is offered, by ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hachi.testing import AnsweringModel

if TYPE_CHECKING:
    from collections.abc import Callable

SAID = [
    ("Mein Türcode ist 4711 und ich mag Tee", "Anas Türcode ist 4711", "Ana mag Tee", "4711"),
    ("Ich wohne in Köln. Duz mich bitte.", "Ana wohnt in Köln", "Ana möchte geduzt werden", "Köln"),
    ("Meine Schwester heißt Ute, ich habe zwei Katzen", "Anas Schwester heißt Ute", "Ana hat Katzen", "Ute"),
    ("Ich bin schwanger und arbeite als Lehrerin", "Ana ist schwanger", "Ana ist Lehrerin", "schwanger"),
    ("Mon code est le 8315 et j'aime le thé", "Le code d'Ana est 8315", "Ana aime le thé", "8315"),
    ("J'habite à Lyon et je joue du violon", "Ana habite à Lyon", "Ana joue du violon", "Lyon"),
    ("Je suis allergique aux noix ; tutoie-moi", "Ana est allergique aux noix", "Ana veut le tu", "noix"),
    ("Mi PIN es 9042 y me gusta el mar", "El PIN de Ana es 9042", "A Ana le gusta el mar", "9042"),
    ("Vivo en Sevilla y toco la guitarra", "Ana vive en Sevilla", "Ana toca la guitarra", "Sevilla"),
    ("Estoy embarazada y corro cada día", "Ana está embarazada", "Ana corre cada día", "embarazada"),
    ("הקוד שלי הוא 5561 ואני אוהבת תה", "הקוד של אנה הוא 5561", "אנה אוהבת תה", "5561"),
    ("אני גרה בחיפה ומנגנת בכינור", "אנה גרה בחיפה", "אנה מנגנת בכינור", "בחיפה"),
    ("私の暗証番号は7702です。お茶が好きです。", "アナの暗証番号は7702", "アナはお茶が好き", "7702"),
    ("大阪に住んでいます。猫が二匹います。", "アナは大阪に住んでいる", "アナは猫を飼っている", "大阪"),
    ("Il mio codice è 6120 e amo il caffè", "Il codice di Ana è 6120", "Ana ama il caffè", "6120"),
    ("Abito a Torino e suono il piano", "Ana abita a Torino", "Ana suona il piano", "Torino"),
    ("Мой код 3394, и я люблю чай", "Код Анны 3394", "Анна любит чай", "3394"),
    ("Mijn code is 2287 en ik hou van thee", "Ana's code is 2287", "Ana houdt van thee", "2287"),
    ("Mój kod to 6543 i lubię herbatę", "Kod Any to 6543", "Ana lubi herbatę", "6543"),
    ("我的密码是 8846,我喜欢喝茶", "安娜的密码是 8846", "安娜喜欢喝茶", "8846"),
]


@pytest.mark.parametrize("place", [None, "acme/general"])
@pytest.mark.parametrize(("said", "fact", "other", "secret"), SAID)
async def test_the_fact_goes_with_what_tells_it_and_the_rest_stays(
    open_pet: Callable[..., Any], said: str, fact: str, other: str, secret: str, place: str | None
) -> None:
    learned = [{"content": content, "importance": 0.9} for content in (fact, other)]
    model = AnsweringModel({"message": "…", "memories": learned}, f"{fact}.", "…", "…")
    pet = await open_pet(given=model, look_back="off")
    at: dict[str, Any] = {"user": "ana", "place": place}
    await pet.respond(said, **at, author="Ana", settle=True)
    await pet.respond("?", user="ben" if place else "ana", place=place, author="Ben", settle=True)
    await pet.respond("!", user="ben", place="acme/general", author="Ben", settle=True)
    [memory] = [one for one in await pet.memories.list(**at) if one.content == fact]
    before = {m.text for m in await pet.conversations.messages(user="ben", place="acme/general")}

    receipt = await pet.memories.forget(memory.id, **at)

    assert (receipt.messages, receipt.replies) == (1, 2)
    assert {one.content for one in await pet.memories.list(**at)} == {other}
    for user, where in (("ana", None), ("ana", place), ("ben", "acme/general")):
        read = [m.text for m in await pet.conversations.messages(user=user, place=where)]
        read += [hit.content for hit in await pet.search_memories(fact, user=user, place=where)]
        assert not any(secret in text for text in read)
    assert secret not in str(await pet.conversations.export(user="ana"))
    assert "!" in before
    assert "!" in {m.text for m in await pet.conversations.messages(user="ben", place="acme/general")}
    assert {one.content for one in receipt.offered} <= {other, "?"}
    await pet.memories.undo_forget(str(receipt.undo_id), user="ana")
    assert {one.content for one in await pet.memories.list(**at)} == {fact, other}
