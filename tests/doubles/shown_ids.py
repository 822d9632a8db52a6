"""For scripts of `hachi.testing.AnsweringModel`."""

import re


def id_beside(content: str, shown: str) -> str | None:
    """The id that a prompt or a tool's answer shows beside this fact or task; None if it shows neither."""
    exact = re.escape(content)
    fact, task = rf"{exact} \([^()\n]*\) \[(\w+)\]", rf"\[task (\w+)\] {exact} \("
    found = re.search(rf'{fact}|{task}|"id": "(\w+)"[^{{}}]*"content": "{exact}"', shown)
    return next(filter(None, found.groups())) if found else None
