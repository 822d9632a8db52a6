from datetime import UTC, datetime, timedelta

import pytest

from memory.search.ranking import Candidate, decay, rank

NOW = datetime(2026, 11, 21, 15, tzinfo=UTC)
DAY = timedelta(days=1)


def message(text: str = "so be it", author: str = "Ann", days_ago: float = 100) -> Candidate:
    return Candidate("message", text, author, NOW - days_ago * DAY)


def fact(text: str, author: str = "Ann", days_ago: float = 100, importance: float = 0.5) -> Candidate:
    return Candidate("memory", text, author, NOW - days_ago * DAY, importance=importance)


def summary(text: str, days_ago: float = 100) -> Candidate:
    return Candidate("summary", text, "", NOW - days_ago * DAY)


def order(question: str, lanes: dict[str, list[tuple[str, float]]], found: dict[str, Candidate]) -> list[str]:
    return [id_ for id_, _ in rank(question, lanes, found, NOW)]


def test_what_several_lanes_found_comes_before_what_one_found() -> None:
    found = {"one": message(), "both": message(), "tail": message()}
    lanes = {"dense": [("one", 0.6), ("both", 0.59), ("tail", 0.1)], "words": [("both", 3.0), ("tail", 0.5)]}
    assert order("skiing", lanes, found) == ["both", "one", "tail"]


def test_the_exchange_around_a_message_brings_it_up() -> None:
    found = {"said": message("Yes, last spring!"), "other": message()}
    lanes = {"words": [("other", 2.0)], "window_words": [("said", 9.0), ("other", 1.0)]}
    assert order("skiing", lanes, found)[0] == "said"


def test_a_fact_needs_no_exchange_to_stand_beside_messages() -> None:
    found = {"fact": fact("Ann skis"), "message": message("I love it")}
    both = [("fact", 3.0), ("message", 1.0)]
    lanes = {
        "words": both,
        "dense": both,
        "window_words": [("message", 9.0)],
        "window_dense": [("message", 0.9)],
    }
    assert order("skiing", lanes, found)[0] == "fact"


def test_a_summary_comes_after_what_it_was_made_from() -> None:
    for evidence in (message("I ski"), fact("Ann skis")):
        found = {"summary": summary("Ann talks about skiing."), "evidence": evidence, "other": message()}
        both = [("summary", 3.0), ("evidence", 2.9), ("other", 1.0)]
        lanes = {"words": both, "dense": both, "window_words": both[1:], "window_dense": both[1:]}
        assert order("skiing", lanes, found) == ["evidence", "summary", "other"]
    found = {"summary": summary("They talk about skiing."), **{str(n): message() for n in range(9)}}
    both = [("summary", 3.0), *((str(n), 1.0 - n / 10) for n in range(9))]
    lanes = {"words": both, "dense": both, "window_words": both[1:], "window_dense": both[1:]}
    assert dict(rank("skiing", lanes, found, NOW))["summary"] == pytest.approx(0.5), "it needs no exchange"
    assert order("skiing", lanes, found).index("summary") < 5


def test_a_summary_is_about_whom_it_mentions() -> None:
    found = {
        "of ben": summary("Ben dives."),
        "of ann": summary("Ann skis."),
        "a": message(author="Ann"),
        "b": message(author="Ben"),
    }
    lanes = {"words": [("of ben", 2.0), ("of ann", 1.9)]}
    ranked = order("what does Ann do", lanes, found)
    assert ranked.index("of ann") < ranked.index("of ben")


def test_the_last_hit_counts_in_a_short_lane_and_as_none_in_a_full_one() -> None:
    short = {"dense": [("a", 0.8), ("b", 0.75)]}
    scores = dict(rank("ski", short, {"a": fact("A skis"), "b": fact("B dives")}, NOW))
    assert scores["b"] > 0.9 * scores["a"]
    lane = [(str(n), 0.9 - n / 1000) for n in range(60)]
    assert dict(rank("ski", {"dense": lane}, {id_: message() for id_, _ in lane}, NOW))["59"] == 0.0


@pytest.mark.parametrize("fragment", ["Me", "?", "That*", "דני"])
def test_a_fragment_counts_by_its_own_words_alone(fragment: str) -> None:
    found = {"fragment": message(fragment, author="Ann"), "said": message("I ski in May", author="Ann")}
    lanes = {"words": [("said", 1.0)], "window_words": [("fragment", 9.0), ("said", 5.0)]}
    assert rank("what does Ann do", lanes, found, NOW)[-1] == ("fragment", 0.0)


@pytest.mark.parametrize("asked", ["Do you ski, Ann?", "האם את עושה סקי?", "你滑雪吗？"])
def test_a_question_that_was_asked_before_comes_after_a_weaker_statement(asked: str) -> None:
    found = {"asked": message(asked), "said": message("Only in the Alps.")}
    lanes = {"words": [("asked", 9.0), ("said", 5.0)], "window_words": [("asked", 9.0), ("said", 8.0)]}
    assert order("skiing", lanes, found) == ["said", "asked"]


LONG = (
    "I have signed up for the course in Ghent, which begins in March, and paid the first half of it already"
)


def test_only_the_end_of_a_long_question_was_asked() -> None:
    """People tell an assistant facts inside questions."""
    found = {
        "asked": message("Can you help me, please?"),
        "told": message(f"{LONG}, can you help me with it?"),
    }
    lanes = {"words": [("asked", 3.0), ("told", 2.9)]}
    scores = dict(rank("course", lanes, found, NOW))
    assert scores["told"] > 1.5 * scores["asked"]


def test_the_exchange_around_a_long_message_counts_less() -> None:
    found = {"long": message(3 * LONG), "short": message("Yes, last spring!")}
    lanes = {"window_words": [("long", 5.0), ("short", 4.9)]}
    assert order("skiing", lanes, found) == ["short", "long"]
    code = message("Yes, last spring!\n```\n" + 3 * LONG + "\n```")
    assert order("skiing", lanes, found | {"long": code}) == ["long", "short"], "code tells nothing"


def test_a_long_message_gives_way_beside_a_better_one_of_its_exchange() -> None:
    talk = {name: message(3 * LONG) for name in ("best", "next", "other")}
    lanes = {"words": [("best", 3.0), ("next", 2.9), ("other", 2.7)]}
    seqs = {"best": 5, "next": 6, "other": 20}
    beside = {name: one._replace(conversation="c", seq=seqs[name]) for name, one in talk.items()}
    assert order("skiing", lanes, beside) == ["best", "other", "next"]
    apart = beside | {"next": talk["next"]._replace(conversation="d", seq=6)}
    assert order("skiing", lanes, apart) == ["best", "next", "other"], "another conversation"
    answered = beside | {"next": beside["next"]._replace(seq=7)}
    assert order("skiing", lanes, answered) == ["best", "next", "other"]
    ranked = rank("skiing", lanes, answered, NOW, answered=frozenset({"c"}))
    assert [id for id, _ in ranked] == ["best", "other", "next"], "a reply stands between them"


def test_whom_the_question_names_comes_first() -> None:
    found = {"ann": message(author="Ann Lee"), "ben": message(author="Ben")}
    lanes = {"words": [("ben", 2.0), ("ann", 1.9)]}
    assert order("where did ann go", lanes, found) == ["ann", "ben"]
    assert order("where did they go", lanes, found) == ["ben", "ann"]
    plain = rank("where did they go", lanes, found, NOW)
    assert rank("where did Ann and Ben go", lanes, found, NOW) == plain, "with all named names tell nothing"


def test_a_fact_is_about_whom_it_or_its_subjects_mention_before_who_said_it() -> None:
    found = {"about ann": fact("Ann skis", author="Ben"), "about ben": fact("Ben skis", author="Ann")}
    lanes = {"words": [("about ben", 2.0), ("about ann", 1.9)]}
    assert order("what does Ann do", lanes, found)[0] == "about ann"
    tagged = fact("Skis", author="Ben")._replace(subjects=("ann",))
    found = {"tagged": tagged, "other": fact("Dives", author="Ben"), "heard": message(author="Ann")}
    assert order("what does Ann do", {"words": [("other", 2.0), ("tagged", 1.9)]}, found)[0] == "tagged"


def test_what_was_said_then_comes_first_when_the_question_says_when() -> None:
    found = {"then": message(days_ago=1), "before": message(days_ago=9), "soon after": message(days_ago=0.1)}
    lanes = {"words": [("before", 2.0), ("soon after", 1.9), ("then", 1.9)]}
    assert order("what did we say on 20 November?", lanes, found) == ["then", "soon after", "before"]
    assert order("what did we say?", lanes, found)[0] == "before"
    found = {name: message(days_ago=days) for name, days in (("on", 1), ("day before", 1.9), ("long ago", 4))}
    scores = dict(rank("what happened on 20 November 2026?", {}, found, NOW))
    assert scores["on"] > scores["day before"] > scores["long ago"] == 0.0


def test_importance_is_a_mild_factor_for_facts() -> None:
    found = {"slight": fact("Skis at times", importance=0.1), "grave": fact("Broke a leg", importance=0.9)}
    assert order("leg", {"words": [("slight", 2.0), ("grave", 1.9)]}, found)[0] == "grave"
    assert order("leg", {"words": [("slight", 2.0), ("grave", 0.5)]}, found)[0] == "slight"


def test_a_fact_that_repeats_another_steps_back_and_stays() -> None:
    found = {
        "first": fact("Ann skis in the Alps."),
        "again": fact("ann skis in the alps!"),
        "new": fact("Ben dives"),
    }
    lanes = {"words": [("first", 2.0), ("again", 1.99), ("new", 1.6)]}
    assert order("sports", lanes, found) == ["first", "new", "again"]


def test_of_two_facts_of_one_thing_the_newer_comes_first() -> None:
    found = {
        "before": fact("Ann has 3 hens in the yard", days_ago=60),
        "now": fact("Ann has 5 hens in the yard", days_ago=2),
        "other": fact("Ben has a dog"),
    }
    lanes = {"words": [("before", 2.0), ("now", 1.9), ("other", 1.7)]}
    assert order("how many hens", lanes, found) == ["now", "other", "before"]


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("Ann keeps her boat at berth 2", "Ann keeps her boat at berth 23"),
        ("The key of the shed is in drawer B", "The key of the shed is in drawer C"),
        ("安娜的自行车停在二号车库里面", "安娜的自行车停在三号车库里面"),
    ],
)
def test_of_two_nearly_equal_facts_the_one_that_the_question_names_comes_first(before: str, now: str) -> None:
    found = {"before": fact(before, days_ago=60), "now": fact(now, days_ago=2)}
    for scores in (2.0, 1.9), (1.9, 2.0):
        lanes = {"words": [*zip(found, scores, strict=True)]}
        assert order(before, lanes, found)[0] == "before"
        assert order(now, lanes, found)[0] == "now"


def test_scores_fade_with_age_only_where_asked_and_use_slows_it() -> None:
    found = {"old": message(days_ago=100), "new": message(days_ago=1)}
    lanes = {"words": [("old", 2.0), ("new", 1.9)]}
    assert [i for i, _ in rank("x", lanes, found, NOW)] == ["old", "new"]
    assert [i for i, _ in rank("x", lanes, found, NOW, half_life=30 * DAY)] == ["new", "old"]
    assert [decay(message(days_ago=days), NOW, 30 * DAY) for days in (0, -1, 60)] == [
        1,
        1,
        pytest.approx(0.25),
    ]
    plain = fact("Ann skis", days_ago=60)
    assert decay(plain._replace(uses=1), NOW, 30 * DAY) == pytest.approx(0.5)
    assert decay(plain._replace(last_accessed_at=NOW - 30 * DAY), NOW, 30 * DAY) == pytest.approx(0.5)


def test_what_matches_weakly_is_no_hit() -> None:
    found = {"good": message("Ann skis in the Alps"), "weak": message("It is so"), "some": message("I ski")}
    words = [("good", 9.0), ("some", 5.0), ("weak", 0.9), *((f"gone {n}", 0.8) for n in range(49))]
    lanes = {"words": words, "window_words": words}
    scores = dict(rank("skiing", lanes, found, NOW))
    assert scores["weak"] == 0.0 < scores["some"] < scores["good"]


def test_a_question_about_something_else_finds_nothing_though_something_is_nearest() -> None:
    found = {str(n): message() for n in range(3)}
    lanes = {"dense": [("0", 0.15), ("1", 0.1), ("2", 0.02)]}
    full = {"dense": 0.4, "window_dense": 0.4}
    assert {score for _, score in rank("the capital of Peru", lanes, found, NOW, full=full)} == {0.0}
    near = lanes | {"dense": [("0", 0.45), ("1", 0.1)], "window_dense": [("0", 0.4)]}
    assert [id for id, score in rank("skiing", near, found, NOW, full=full) if score] == ["0"]
    then = {"0": message(days_ago=1)}
    assert rank("on 20 November 2026", lanes, then, NOW, full=full)[0][1] > 0.0, "it is from that day"
