"""How much of something is shown: whole items, never more than the budget."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.turn.context.budget import Purse, lines_that_fit, newest_that_fit
from agent.types.budget import Budget, tokens
from memory.text import one_line

TEXTS = st.lists(st.text(max_size=30), max_size=12)
BUDGETS = st.builds(Budget, st.integers(0, 200), st.sampled_from(["characters", "tokens"]))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("500", Budget(500)),
        ("500 characters", Budget(500)),
        ("1 character", Budget(1)),
        (" 12,000 c ", Budget(12_000)),
        ("125 tokens", Budget(125, "tokens")),
        ("1 Token", Budget(1, "tokens")),
        (Budget(7, "tokens"), Budget(7, "tokens")),
    ],
)
def test_a_budget_is_written_in_characters_or_tokens(written, meant):
    assert Budget.parse(written) == meant


@pytest.mark.parametrize("written", ["", "many", "-5", "5.5", "500 words", "5 tokens more", "²"])
def test_what_is_no_budget_is_told_what_to_write(written):
    with pytest.raises(ValueError, match="such as 500 or 125 tokens"):
        Budget.parse(written)


@given(BUDGETS)
def test_a_budget_is_read_as_it_is_shown(budget):
    assert Budget.parse(str(budget)) == budget


def test_tokens_are_counted_by_bytes_so_that_every_script_pays_its_due():
    assert tokens("") == 0
    assert tokens("four") == 1
    assert tokens("fours") == 2
    assert tokens("שלום") == 2
    assert tokens("我们明天") == 3
    assert tokens("\ud83d") == 1


@given(TEXTS, BUDGETS)
def test_lines_that_were_paid_for_keep_within_the_budget(texts, budget):
    purse = Purse(budget)

    kept = [text for text in texts if purse.take(text)]

    assert budget.cost("\n".join(kept)) <= budget.amount


@given(TEXTS, st.sampled_from(["characters", "tokens"]), st.randoms())
def test_what_fits_exactly_fits_in_any_order(texts, unit, random):
    exact = Budget(Budget(0, unit).cost("\n".join(texts)), unit)  # type: ignore[arg-type]
    random.shuffle(texts)  # type: ignore[attr-defined]
    purse = Purse(exact)

    assert all(purse.take(text) for text in texts)


def test_what_does_not_fit_costs_nothing():
    purse = Purse(Budget(5))

    assert not purse.take("too long")
    assert purse.take("short")
    assert not purse.take("")


@given(TEXTS, BUDGETS)
def test_the_newest_are_kept_without_a_gap_and_no_one_more_would_fit(texts, budget):
    items = list(enumerate(texts))

    kept = newest_that_fit([(at, text) for at, text in items], budget)

    assert kept == [at for at, _ in items][len(items) - len(kept) :]
    assert budget.cost("\n".join(texts[at] for at in kept)) <= budget.amount
    if len(kept) < len(items):
        more = "\n".join(texts[len(texts) - len(kept) - 1 :])
        assert budget.cost(more) > budget.amount


@given(TEXTS, BUDGETS)
def test_the_first_lines_are_kept_whole_and_none_after_one_that_does_not_fit(texts, budget):
    lines = [line for text in "\n".join(texts).splitlines() if (line := one_line(text))]
    kept = lines_that_fit("\n".join(texts), budget)

    assert budget.cost(kept) <= budget.amount
    assert kept.split("\n") == lines[: kept.count("\n") + 1] or kept == "" or kept.endswith("…")


def test_of_a_line_that_does_not_fit_the_first_words_are_kept():
    assert lines_that_fit("A short one.\n\n And a long one." * 2, Budget(20)) == "A short one."
    german = "Treffen am 16. März um 9.30 Uhr.\nSie zieht um."
    assert lines_that_fit(german, Budget(40)) == "Treffen am 16. März um 9.30 Uhr.", "no sentence ends in it"
    assert lines_that_fit("One very long line " * 20, Budget(39)) == "One very long line One very long line …"
    assert lines_that_fit("x" * 50, Budget(40)) == ""
