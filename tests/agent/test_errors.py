"""The errors a caller sees, as a tree."""

import inspect

import pytest

import agent.errors
import memory.errors
from agent.errors import FAULTS, HachiError, ModelError
from memory.errors import MemoryFault


def _all(module: object) -> dict[str, type[Exception]]:
    return {
        name: kind
        for name, kind in vars(module).items()
        if inspect.isclass(kind) and kind.__module__ == module.__name__  # type: ignore[attr-defined]
    }


@pytest.mark.parametrize(("module", "root"), [(agent.errors, HachiError), (memory.errors, MemoryFault)])
def test_the_docstring_draws_the_tree_as_it_is(module: object, root: type[Exception]) -> None:
    drawn = [line.split("──")[-1].split()[0] for line in (module.__doc__ or "").splitlines() if "──" in line]

    assert sorted([root.__name__, *drawn]) == sorted(_all(module))
    assert all(issubclass(kind, root) for kind in _all(module).values())


def test_everything_hangs_on_two_roots() -> None:
    assert set(FAULTS) == {HachiError, MemoryFault}
    assert not issubclass(HachiError, MemoryFault)
    assert not issubclass(MemoryFault, HachiError)


def test_the_models_faults_can_be_caught_together() -> None:
    assert {kind.__name__ for kind in ModelError.__subclasses__()} == {
        "AnswerMisfit",
        "ModelRejected",
        "ModelUnavailable",
    }
