"""Forgetting in other languages than English: what goes, what stays and what is offered, by ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hachi.testing import AnsweringModel
from memory.audience import Place
from memory.people.profile_entries import Entry

if TYPE_CHECKING:
    from collections.abc import Callable

SAID = [
    ("Mein Türcode ist 4711 und ich mag Tee", "Anas Türcode ist 4711", "Ana mag Tee", "4711"),
    ("Ich wohne in Köln. Duz mich bitte.", "Ana wohnt in Köln", "Ana möchte geduzt werden", "Köln"),
    ("Ich bin schwanger und arbeite als Lehrerin", "Ana ist schwanger", "Ana ist Lehrerin", "schwanger"),
    ("Mon code est le 8315 et j'aime le thé", "Le code d'Ana est 8315", "Ana aime le thé", "8315"),
    ("Je suis allergique aux noix ; tutoie-moi", "Ana est allergique aux noix", "Ana veut le tu", "noix"),
    ("Mi PIN es 9042 y me gusta el mar", "El PIN de Ana es 9042", "A Ana le gusta el mar", "9042"),
    ("Vivo en Sevilla y toco la guitarra", "Ana vive en Sevilla", "Ana toca la guitarra", "Sevilla"),
    ("Mój kod to 6543 i lubię herbatę", "Kod Any to 6543", "Ana lubi herbatę", "6543"),
    ("Rozstałam się z Markiem, mam dwa koty", "Ana rozstała się z Markiem", "Ana ma dwa koty", "Markiem"),
    ("Kapı şifrem 3127 ve çayı severim", "Ana'nın kapı şifresi 3127", "Ana çay sever", "3127"),
    ("İzmir'de yaşıyorum, keman çalıyorum", "Ana İzmir'de yaşıyor", "Ana keman çalıyor", "İzmir"),
    ("رمزي السري هو 7741 وأحب الشاي", "رمز آنا السري هو 7741", "آنا تحب الشاي", "7741"),
    ("أسكن في حلب وأعزف على العود", "آنا تسكن في حلب", "آنا تعزف على العود", "حلب"),
    ("הקוד שלי הוא 5561 ואני אוהבת תה", "הקוד של אנה הוא 5561", "אנה אוהבת תה", "5561"),
    ("मेरा पिन 2380 है और मुझे चाय पसंद है", "आना का पिन 2380 है", "आना को चाय पसंद है", "2380"),
    ("私の暗証番号は7702です。お茶が好きです。", "アナの暗証番号は7702", "アナはお茶が好き", "7702"),
    ("大阪に住んでいます。猫が二匹います。", "アナは大阪に住んでいる", "アナは猫を飼っている", "大阪"),
    ("我的密码是 8846,我喜欢喝茶", "安娜的密码是 8846", "安娜喜欢喝茶", "8846"),
    ("내 비밀번호는 1937이고 차를 좋아해요", "아나의 비밀번호는 1937", "아나는 차를 좋아한다", "1937"),
    ("Мой код 3394, и я люблю чай", "Код Анны 3394", "Анна любит чай", "3394"),
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
    [message] = [one for one in await pet.conversations.messages(user="ana", place=place) if one.text == said]
    await rest_on(pet, message.id, other, secret, Place.parse(place))
    await pet.respond("?", user="ben" if place else "ana", place=place, author="Ben", settle=True)
    await pet.respond("!", user="ben", place="acme/general", author="Ben", settle=True)
    [memory] = [one for one in await pet.memories.list(**at) if one.content == fact]
    assert (await pet.memories.find_to_forget(fact, **at))[0].id == memory.id

    receipt = await pet.memories.forget(memory.id, **at)

    assert (receipt.messages, receipt.replies) == (1, 2)
    assert {one.content for one in await pet.memories.list(**at)} == {other}
    for user, where in (("ana", None), ("ana", place), ("ben", "acme/general")):
        read = [m.text for m in await pet.conversations.messages(user=user, place=where)]
        read += [hit.content for hit in await pet.search_memories(fact, user=user, place=where)]
        assert not any(secret in text for text in read)
    assert "!" in {m.text for m in await pet.conversations.messages(user="ben", place="acme/general")}
    assert {f"{one.kind} {one.content}" for one in receipt.offered} - {f"memory {other}"} == {
        f"entry location: {secret}",
        f"task {other} ({secret})",
    }
    for one in receipt.offered:
        await pet.memories.forget(one.id, **at, kind=one.kind)
    assert secret not in str(await pet.conversations.export(user="ana"))
    await pet.memories.undo_forget(str(receipt.undo_id), user="ana")
    assert fact in {one.content for one in await pet.memories.list(**at)}


async def rest_on(pet: Any, message: str, other: str, secret: str, place: Place) -> None:
    """Store an entry of the profile and a task that the message alone states."""
    entry = Entry("profile.location", "", secret, pet.clock(), frozenset({message}))
    await pet.components.profiles.merge("ana", place, [entry])
    task = {"now": pet.clock(), "place": place, "heard": message}
    await pet.components.tasks.update("ana", f"{other} ({secret})", **task)
