"""The errors a caller sees, as a tree."""

import inspect

import pytest

import agent.errors
import memory.errors
from agent.errors import HachiError, ModelError


def _all(module: object) -> dict[str, type[Exception]]:
    return {
        name: kind
        for name, kind in vars(module).items()
        if inspect.isclass(kind) and kind.__module__ == module.__name__  # type: ignore[attr-defined]
    }


@pytest.mark.parametrize("module", [agent.errors, memory.errors])
def test_the_docstring_draws_the_tree_as_it_is(module):
    drawn = {line.split("── ")[-1].split()[0] for line in (module.__doc__ or "").splitlines() if "──" in line}

    assert drawn - {"memory.errors.MemoryFault"} == _all(module).keys() - {"HachiError"}
    assert all(issubclass(kind, HachiError) for kind in _all(module).values())


def test_the_models_faults_can_be_caught_together():
    assert {kind.__name__ for kind in ModelError.__subclasses__()} == {
        "AnswerMisfit",
        "ModelRejected",
        "ModelUnavailable",
    }
