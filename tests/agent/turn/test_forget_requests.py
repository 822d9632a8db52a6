"""What a person asks in words to forget."""

import json

from scripted_server import Say, answer

from memory.records import ForgetCandidate

PLAN = "Ben plans to quit his job"


def asks(*forget: str, memories: tuple[str, ...] = ()) -> Say:
    """An answer that names what is to be forgotten."""
    drafts = [{"content": content} for content in memories]
    told = {"message": "I will ask you to confirm.", "memories": drafts, "forget": list(forget)}
    return Say(json.dumps(told))


def contents(candidates: tuple[ForgetCandidate, ...] | None) -> list[tuple[str, str]]:
    assert candidates is not None
    return [(candidate.kind, candidate.content) for candidate in candidates]


async def test_a_person_is_shown_what_they_may_mean_and_it_stays_until_they_confirm(
    pet_at, first_way, server
):
    pet = await pet_at(first_way)
    server.script(answer("Oh!", {"content": PLAN}), asks(PLAN))
    await pet.respond("I plan to quit my job. Also, my boat is red.", user="ben")
    await pet.settle()
    await pet.remember("Ben has a red boat", user="ben")

    reply = await pet.respond("Please forget that I plan to quit", user="ben")

    assert contents(reply.forget) == [("memory", PLAN)], "its message goes with it"
    [found] = reply.forget or ()
    later = await pet.memories.preview_forget(found.id, user="ben", asked_in=found.asked_in)
    assert {memory.content for memory in await pet.memories.list(user="ben")} == {PLAN, "Ben has a red boat"}

    taken = await pet.memories.forget_confirmed(reply.forget or (), user="ben")

    [receipt] = taken
    assert (receipt.content, receipt.messages) == (PLAN, 2), "with the message that asked"
    for shown in (found, later):
        assert (len(shown.messages), shown.replies) == (receipt.messages, receipt.replies), "as announced"
    assert [memory.content for memory in await pet.memories.list(user="ben")] == ["Ben has a red boat"]
    assert not [hit for hit in await pet.search_memories("quit job", user="ben") if "quit" in hit.content]


async def test_what_a_model_names_though_nobody_spoke_of_it_is_not_offered(pet_at, first_way, server):
    pet = await pet_at(first_way)
    await pet.remember(PLAN, user="ben")
    await pet.remember("Ben has a red boat", user="ben")
    server.script(asks("Zed sells umbrellas"), asks(PLAN), answer("You plan to quit."), asks(PLAN))

    nothing = await pet.respond("Hello there", user="ben")
    unasked = await pet.respond("Is my boat still red?", user="ben")
    await pet.respond("What am I up to?", user="ben")
    answered = await pet.respond("Then drop it", user="ben")

    assert (nothing.forget, unasked.forget) == (None, None)
    assert contents(answered.forget) == [("memory", PLAN)], "the exchange before speaks of it"


async def test_a_message_is_offered_where_no_fact_was_made_of_it(pet_at, first_way, server):
    pet = await pet_at(first_way)
    server.script(answer("Noted."), asks("Ben's PIN is 4711"))
    await pet.respond("my PIN is 4711", user="ben")

    reply = await pet.respond("forget my PIN, please", user="ben")

    assert contents(reply.forget) == [("message", "my PIN is 4711")]
    await pet.memories.forget_confirmed(reply.forget or (), user="ben")
    assert "4711" not in str(await pet.search_memories("my PIN", user="ben"))


async def test_the_only_one_that_a_search_finds_is_sure_and_others_are_chosen(pet_at, first_way, server):
    pet = await pet_at(first_way)
    for content in (PLAN, "Ben plans to quit in spring", "Ben has a red boat"):
        await pet.remember(content, user="ben")

    sure = await pet.memories.find_to_forget("my boat", user="ben")
    unsure = await pet.memories.find_to_forget("that I plan to quit my job", user="ben")

    assert [(one.content, one.sure) for one in sure] == [("Ben has a red boat", True)]
    assert [(one.content, one.sure) for one in unsure] == [
        (PLAN, False),
        ("Ben plans to quit in spring", False),
    ]
    assert await pet.memories.find_to_forget("zebra", user="ben") == ()


async def test_only_what_this_person_told_and_may_read_here_is_offered(pet_at, first_way, server):
    pet = await pet_at(first_way)
    await pet.remember(PLAN, user="ana", place="acme/general")
    await pet.remember("Ben plans to quit in spring", user="ben")
    server.script(asks(PLAN), asks(PLAN))

    in_place = await pet.respond("forget that I quit", user="ben", place="acme/general")
    in_private = await pet.respond("forget that I quit", user="ben")

    assert in_place.forget == ()
    asked_before = ("message", "forget that I quit")
    assert contents(in_private.forget) == [("memory", "Ben plans to quit in spring"), asked_before]


async def test_where_nothing_is_asked_nothing_is_searched(pet_at, first_way, server):
    pet = await pet_at(first_way)
    server.script(answer("Hello."), asks(PLAN))
    assert (await pet.respond("good morning to all of you", user="ben")).forget is None
    assert (await pet.respond("forget it", user=None)).forget is None


async def test_what_a_model_notes_of_the_request_against_its_prompt_is_offered(pet_at, first_way, server):
    pet = await pet_at(first_way)
    await pet.remember(PLAN, user="ben")
    noted = "Ben no longer plans to quit his job"
    server.script(asks(PLAN, memories=(noted, "Ben likes tea")))
    reply = await pet.respond("Forget that I plan to quit my job; and I like tea", user="ben")
    await pet.settle()

    [receipt] = await pet.memories.forget_confirmed(reply.forget or (), user="ben")

    assert (receipt.content, [one.content for one in receipt.offered]) == (PLAN, [noted])
    assert {memory.content for memory in await pet.memories.list(user="ben")} == {noted, "Ben likes tea"}


async def test_what_was_told_beside_the_request_stays_known(pet_at, first_way, server):
    pet = await pet_at(first_way)
    await pet.remember(PLAN, user="ben")
    told = {"message": "I will ask.", "memories": [{"content": "Ben works at Acme"}], "forget": [PLAN]}
    server.script(Say(json.dumps(told)))
    reply = await pet.respond("Forget the thing about my job. I work at Acme now.", user="ben")
    await pet.settle()

    await pet.memories.forget_confirmed(reply.forget or (), user="ben")

    assert [memory.content for memory in await pet.memories.list(user="ben")] == ["Ben works at Acme"]
    assert "thing about my job" not in str(await pet.conversations.messages(user="ben"))


async def test_the_words_of_a_fact_mean_it_surely_and_no_other(pet_at, first_way, server):
    pet = await pet_at(first_way)
    for fact in ("Ana lives in Lyon", "Ana is allergic to penicillin", "Ana lived in Rome", "安娜住在里昂"):
        await pet.remember(fact, user="ana", subjects=["ana"])
    words = ("lives in Lyon", "the fact that Ana lives in Lyon", "Allergic to penicillin!", "住在里昂")
    meant = [await pet.memories.find_to_forget(text, user="ana") for text in words]

    assert [[(one.content, one.sure) for one in found] for found in meant] == [
        [("Ana lives in Lyon", True)],
        [("Ana lives in Lyon", True)],
        [("Ana is allergic to penicillin", True)],
        [("安娜住在里昂", True)],
    ]
    await pet.remember("Ana lives in Lyon with her sister Lea", user="ana")
    [same] = await pet.memories.find_to_forget("ana lives in Lyon.", user="ana")
    assert (same.content, same.sure) == ("Ana lives in Lyon", True), "and not what only contains them"
