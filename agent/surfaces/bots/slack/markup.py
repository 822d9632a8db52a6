"""Slack's markup: messages of people as plain text, and escaped text of ours.

Slack acts on `<…>` in what is posted: `<!channel>` notifies everybody, `<https://…|…>` hides where a link
goes. A memory or a model's reply may contain any of it, so all that is posted is escaped.
"""

import re
from collections.abc import Mapping

_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_TOKEN = re.compile(r"<([^<>\n]+)>")
_USER = re.compile(r"<@([UW][A-Z0-9]+)(?:\|[^<>]*)?>")
_SPECIAL = re.compile(r"https?://[^\s<>]*|^ {0,3}>|([&<>])", re.MULTILINE)


def escape(text: str) -> str:
    """For `mrkdwn` and plain text."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def escape_markdown(text: str) -> str:
    """For `markdown_text`: leaves the `&` of addresses and the `>` of quotations. The result for the start of
    a text is the start of the result for all of it, so a growing text can be appended to."""
    return _SPECIAL.sub(lambda found: _ESCAPES[found[1]] if found[1] else found[0], text)


def mentioned_users(text: str) -> list[str]:
    """The ids of the people it mentions, in order."""
    return _USER.findall(text)


def plain_text(text: str, names: Mapping[str, str]) -> str:
    """A message as its author saw it. `names` are those of the people it mentions, by id."""
    shown = _TOKEN.sub(lambda found: _readable(found[1], names), text)
    return shown.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").strip()


def _readable(token: str, names: Mapping[str, str]) -> str:
    target, _, label = token.partition("|")
    if target.startswith("@"):
        return f"@{names.get(target[1:]) or label or target[1:]}"
    if target.startswith("#"):
        return f"#{label or target[1:]}"
    if target.startswith("!"):
        return label or f"@{target[1:]}"
    address = target.removeprefix("mailto:")
    return f"{label} ({address})" if label and label not in address else address
