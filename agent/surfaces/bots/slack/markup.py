"""Slack's markup: what people wrote as plain text, and text of ours so that nothing in it does anything.

Slack reads `<…>` in what is posted: `<!channel>` wakes everybody, `<@U1>` a person, `<https://…|…>` hides
where a link goes. A memory or a model may contain any of it, so it is escaped wherever we post.
"""

import re
from collections.abc import Mapping

_SIGNS = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_TOKEN = re.compile(r"<([^<>\n]+)>")
_USER = re.compile(r"<@([UW][A-Z0-9]+)(?:\|[^<>]*)?>")
_SPECIAL = re.compile(r"https?://[^\s<>]*|^ {0,3}>|([&<>])", re.MULTILINE)


def escaped(text: str) -> str:
    """For `mrkdwn` and everything that is not Markdown."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def markdown(text: str) -> str:
    """For `markdown_text`: addresses keep their `&`, which Slack does not read back in them, and a quotation
    its `>`. What comes out for the start of a text is the start of what comes out for all of it, so a text
    can be sent as it grows."""
    return _SPECIAL.sub(lambda found: _SIGNS[found[1]] if found[1] else found[0], text)


def mentioned(text: str) -> list[str]:
    """The ids of the people it names, in order."""
    return _USER.findall(text)


def plain(text: str, names: Mapping[str, str]) -> str:
    """What a person wrote, as they saw it; `names` are those of the people it mentions, by their ids."""
    shown = _TOKEN.sub(lambda found: _shown(found[1], names), text)
    return shown.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").strip()


def _shown(token: str, names: Mapping[str, str]) -> str:
    what, _, label = token.partition("|")
    if what.startswith("@"):
        return f"@{names.get(what[1:]) or label or what[1:]}"
    if what.startswith("#"):
        return f"#{label or what[1:]}"
    if what.startswith("!"):
        return label or f"@{what[1:]}"
    address = what.removeprefix("mailto:")
    return f"{label} ({address})" if label and label not in address else address
