"""The fixtures of `hachi.testing`. Nothing is imported until a test uses one."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from hachi import Companion
    from hachi.testing import AnsweringModel, FixedClock


@pytest.fixture
def hachi_clock() -> "FixedClock":
    from hachi.testing import FixedClock

    return FixedClock()


@pytest.fixture
def hachi_model() -> "AnsweringModel":
    """Answers "I see." and records its calls."""
    from hachi.testing import AnsweringModel

    return AnsweringModel()


@pytest.fixture
def hachi_companion(
    hachi_clock: "FixedClock", hachi_model: "AnsweringModel"
) -> "Callable[..., AbstractAsyncContextManager[Companion]]":
    """`async with hachi_companion() as pet:` opens a companion with this clock and model; the options are
    those of `temporary_companion`."""
    from hachi.testing import temporary_companion

    def opened(**options: Any) -> "AbstractAsyncContextManager[Companion]":
        return temporary_companion(**{"clock": hachi_clock, "model": hachi_model, **options})

    return opened
