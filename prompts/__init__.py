"""Read Hachi's prompts: one Markdown file for each prompt, with places written {{like_this}}."""

import re
from functools import cache
from importlib.resources import files

_PLACE = re.compile(r"\{\{(\w+)\}\}")


@cache
def read(name: str, /) -> str:
    """Return the text of a prompt's file, without blanks around it."""
    return files("prompts").joinpath(f"{name}.md").read_text(encoding="utf-8").strip()


def render(name: str, /, **values: str) -> str:
    """Fill in a prompt. Strict: a place without a value, or a value without a place, raises KeyError."""
    text = read(name)
    places = set(_PLACE.findall(text))
    if places != values.keys():
        missing, unknown = sorted(places - values.keys()), sorted(values.keys() - places)
        raise KeyError(f"prompt {name!r}: no value for {missing}, no place for {unknown}")
    return _PLACE.sub(lambda place: values[place[1]], text)
