"""The names under which the model is shown a client's tools: theirs, unless Hachi has a tool of that name."""

from collections.abc import Collection, Iterable
from itertools import count


def shown_names(theirs: Iterable[str], own: Collection[str]) -> dict[str, str]:
    """Return the name that the model is shown for each name of a client's tool: the same, or another one if
    it is among our `own`. No two are the same, and a provider that takes the name takes the other one."""
    names = list(dict.fromkeys(theirs))
    taken = {*names, *own}
    shown = {}
    for name in names:
        shown[name] = _free(name, taken) if name in own else name
        taken.add(shown[name])
    return shown


def _free(name: str, taken: Collection[str]) -> str:
    others = (f"client{number if number > 1 else ''}_{name}" for number in count(1))
    return next(other for other in others if other not in taken)
