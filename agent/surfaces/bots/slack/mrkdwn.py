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
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^`\n]*)$", re.MULTILINE)
_CODE = re.compile(r"(?<!`)((`+)(?!`).+?(?<!`)\2(?!`))")
"""Code within a line."""
_NOTIFIES = re.compile(r"<(?=!(?:here|channel|everyone|subteam)\b|@[UW][A-Z0-9])")


def escape(text: str) -> str:
    """Escape for `mrkdwn` and plain text."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def escape_markdown(text: str, *, final: bool = True) -> str:
    """For `markdown_text`: code stays as it is, apart from what would notify people, and so do the `&` of
    addresses and the `>` of quotations. Without `final` the text may go on: the result leaves out an end that
    may turn out to be code or not, and is how the result for a longer text begins."""
    lines, fence = [], ""
    for line in re.findall(r"[^\n]*\n|[^\n]+", text):
        found = _FENCE.match(line)
        if not (final or line.endswith("\n")):
            lines.append(_escape_growing(line, fence))
        elif fence or found:
            lines.append(_NOTIFIES.sub("&lt;", line))
        else:
            lines.append(_escape_line(line))
        if found and not fence:
            fence = found[1]
        elif found and found[1].startswith(fence) and not found[2].strip():
            fence = ""
    return "".join(lines)


def _escape_line(line: str) -> str:
    """Escape a line outside code blocks, except the code in it."""
    parts = _CODE.split(line)  # text, code and its backticks in turn
    return "".join(
        _SPECIAL.sub(lambda found: _ESCAPES[found[1]] if found[1] else found[0], part)
        if at % 3 == 0
        else _NOTIFIES.sub("&lt;", part)
        for at, part in enumerate(parts)
        if at % 3 != 2
    )


def _escape_growing(line: str, fence: str) -> str:
    if fence:
        return line.partition("<")[0]
    # One more backtick would open the last one again.
    ends = [found.end() for found in _CODE.finditer(line)]
    closed = max((end for end in ends if end < len(line)), default=0)
    end = 0 if line.lstrip().startswith("~") else line.find("`", closed)
    return _escape_line(line if end < 0 else line[:end])


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
