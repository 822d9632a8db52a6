"""The fused order: what matches in meaning and words comes first, and not five times the same."""

from hypothesis import given
from hypothesis import strategies as st

from memory.documents.rerank import Candidate
from memory.documents.rerank.fused import NEAR_COPY, FusedReranker, diverse, match_scores, stems


def candidate(
    id: str, text: str = "", document: str | None = None, heading: str = "", **given: float
) -> Candidate:
    match = given.pop("match", 0.0)
    return Candidate(id, document or id, 0, "", heading, text, f"/{document or id}.md", given, match)


def order(query: str, *candidates: Candidate) -> list[str]:
    scores = match_scores(query, candidates)
    return sorted(scores, key=lambda id: -scores[id])


def test_the_lanes_count_together() -> None:
    both = candidate("both", dense=0.5, words=9.0)
    near, said = candidate("near", dense=0.6, words=1.0), candidate("said", dense=0.1, words=10.0)
    assert order("tea", near, said, both)[0] == "both"


def test_a_heading_that_says_what_is_asked_counts() -> None:
    scores = {"dense": 0.4, "words": 5.0}
    named, other = (
        candidate("named", heading="Brewing tea", **scores),
        candidate("other", heading="Notes", **scores),
    )
    assert order("how is tea brewed", other, named) == ["named", "other"]


def test_a_document_that_says_much_on_it_comes_first() -> None:
    much = [candidate(f"much{n}", document="much", dense=0.5, words=5.0 - n / 10) for n in range(3)]
    alone = candidate("alone", dense=0.5, words=5.0)
    assert order("tea", alone, *much)[-1] == "alone"


def test_what_matches_in_nothing_counts_nothing() -> None:
    assert match_scores("tea", [candidate("a", dense=-0.2), candidate("b", words=3.0)])["a"] == 0.0
    assert match_scores("???", [candidate("a", dense=0.2)])["a"] > 0.0
    assert match_scores("tea", []) == {}


def test_the_best_of_several_documents_come_before_the_rest_of_one() -> None:
    same = [candidate(f"s{n}", f"Sencha number {n} " * n, "same", match=0.9 - n / 100) for n in range(3)]
    other = candidate("o", "Something else entirely, on whetstones.", match=0.8)
    assert [id for id, _ in diverse([*same, other], 4)] == ["s0", "o", "s1", "s2"]


def test_copies_step_back_and_are_not_lost() -> None:
    text = "Sencha is steeped for two minutes at seventy degrees, as everybody knows."
    copies = [candidate(f"c{n}", text + "!" * n, match=0.9) for n in range(3)]
    other = candidate("o", "A blunt knife is drawn over the whetstone.", match=0.6)
    chosen = diverse([*copies, other], 4)
    assert [id for id, _ in chosen] == ["c0", "o", "c1", "c2"]
    assert chosen[2][1] == 0.9 * NEAR_COPY


async def test_the_reranker_gives_at_most_so_many() -> None:
    given_ = [candidate(str(n), str(n) * 9, match=n / 10) for n in range(9)]
    assert [id for id, _ in await FusedReranker()("tea", given_, 2)] == ["8", "7"]
    assert await FusedReranker()("tea", [], 5) == []


def test_words_are_compared_without_endings_and_small_words() -> None:
    assert stems("the kettles") == stems("Kettle")
    assert stems("?") == frozenset()


scores = st.floats(-1.0, 50.0)
candidates = st.lists(
    st.builds(
        candidate,
        id=st.uuids().map(str),
        text=st.sampled_from(["tea", "tea leaves", "knife", "bread and butter" * 9]),
        document=st.sampled_from("ab"),
        heading=st.sampled_from(["Tea", "Knives", ""]),
        dense=scores,
        words=scores,
        match=st.floats(0.0, 1.0),
    ),
    max_size=8,
    unique_by=lambda c: c.id,
)


@given(candidates, st.integers(0, 10))
def test_scores_lie_between_nothing_and_one_and_fall(found: list[Candidate], limit: int) -> None:
    assert all(0.0 <= score <= 1.0 for score in match_scores("tea knife", found).values())
    chosen = diverse(found, limit)
    assert len({id for id, _ in chosen}) == len(chosen) == min(limit, len(found))
    assert [score for _, score in chosen] == sorted((score for _, score in chosen), reverse=True)


@given(candidates)
def test_the_order_does_not_hang_on_the_order_given(found: list[Candidate]) -> None:
    backwards = found[::-1]
    assert diverse(found, 5) == diverse(backwards, 5)
