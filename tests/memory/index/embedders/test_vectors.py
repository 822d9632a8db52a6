"""What every embedder does to a text before and to a vector after."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memory.index.embedders.vectors import normalised, readable


@given(text=st.text(alphabet=st.characters()), limit=st.integers(0, 60))
def test_a_readable_text_is_valid_and_short_enough(text: str, limit: int) -> None:
    assert len(readable(text, limit).encode()) <= limit
    assert [readable("aé🐶", most) for most in (3, 6, 7)] == ["aé", "aé", "aé🐶"]


def test_a_row_that_is_not_finite_becomes_zeros() -> None:
    rows = np.stack(normalised([[3, 4], [0, 0], [float("nan"), 1], [float("inf"), 1]]))
    assert np.allclose(rows, [[0.6, 0.8], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
