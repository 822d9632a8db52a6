"""Slack's markup, mrkdwn: converts people's messages to plain text, and escapes our texts.

Slack interprets `<…>` in posted text: `<!channel>` notifies everybody, `<https://…|…>` hides a link's target.
A memory or a model's reply may contain any of it, so every posted text is escaped.
"""

import re
from collections.abc import Mapping

_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_TOKEN = re.compile(r"<([^<>\n]+)>")
_USER = re.compile(r"<@([UW][A-Z0-9]+)(?:\|[^<>]*)?>")
_SPECIAL = re.compile(r"https?://[^\s<>]*|^ {0,3}>|([&<>])", re.MULTILINE)


def escape(text: str) -> str:
    """Escape for `mrkdwn` and plain text."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def escape_markdown(text: str) -> str:
    """For `markdown_text`: leaves the `&` of addresses and the `>` of quotations. The result for the start of
    a text is the start of the result for all of it, so a growing text can be appended to."""
    return _SPECIAL.sub(lambda found: _ESCAPES[found[1]] if found[1] else found[0], text)


def mentioned_users(text: str) -> list[str]:
    """Return the ids of the people that the text mentions, in order."""
    return _USER.findall(text)


def plain_text(text: str, names: Mapping[str, str]) -> str:
    """Return the message as its author saw it. `names` maps the ids of mentioned people to names."""
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
