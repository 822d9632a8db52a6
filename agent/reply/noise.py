"""What models write around an answer and nobody should see: thoughts, chat tokens, leaked calls, fences."""

import re

from agent.reply.quotes import joined_surrogates

_INVISIBLE = "\u200b\u2060\ufeff"
EDGES = " \t\r\n\f\v" + _INVISIBLE
_CONTROLS = re.compile(
    r"\r\n?|\x1b\[[0-?]{0,32}[ -/]{0,4}[@-~]"
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufeff\ufffe\uffff\u2028\u2029]"
)

_THOUGHT_NAMES = r"(?:think|thinking|thought|thoughts|reasoning|reflection|scratchpad|analysis)"
THOUGHT_OPENS = re.compile(rf"<({_THOUGHT_NAMES})>|\[(THINK)\]", re.IGNORECASE)
THOUGHT_CLOSES = re.compile(rf"</{_THOUGHT_NAMES}>|\[/THINK\]", re.IGNORECASE)
# After a brace a closing tag counts where it ends a passage, not where a sentence speaks of it.
_ENDS_PASSAGE = re.compile(
    rf"(?:(?<=\n)|(?<=\n )|(?<=\}}))(?:{THOUGHT_CLOSES.pattern})"
    rf"|(?:{THOUGHT_CLOSES.pattern})[ \t]*(?:[\n{{`]|\Z)",
    re.IGNORECASE,
)
_FINAL_CHANNEL = "<|channel|>final<|message|>"
_LAST_ANSWER = re.compile(r"^[ \t]*(?:```\w*\s{0,9})?\{\s{0,99}[\"']message[\"']\s{0,9}:", re.MULTILINE)

OPENING_TOKENS = re.compile(
    r"\s*(?:(?:<s>|<bos>|<\|(?:im_start|begin_of_text|start_header_id|end_header_id|start|python_tag)\|>|<start_of_turn>)"
    r"\s*(?:(?:assistant|model)\b\s*)?)+"
)
TURN_ENDS = re.compile(
    r"<\|(?:im_end|im_start|eot_id|eom_id|end|endoftext|end_of_text|end_of_turn|start_header_id|start|return|call"
    r"|user|assistant)\|>|<(?:end|start)_of_turn>|</s>|\[/?INST\]"
)
_NEXT_SPEAKER = re.compile(r"^[#>*_ \t]{0,6}(?:user|human|utilisateur|instruction)[*_ \t]{0,4}:", re.I | re.M)

_CALL_TAGS = (
    ("<tool_call>", "</tool_call>"),
    ("<function_call>", "</function_call>"),
    ("<tool_calls>", "</tool_calls>"),
    ("<function_calls>", "</function_calls>"),
    ("<function=", "</function>"),
    ("<invoke ", "</invoke>"),
)
_LEFT_TAGS = re.compile(
    r"</?(?:tool_calls?|function_calls?|function|response|answer|output|json|final)>|\[TOOL_CALLS\]|<\|[a-z_]{1,30}\|>|</s>"
)
# What is left next to an object that was taken out. The end is looked for backwards, so it stays cheap.
_LEFT_AFTER = re.compile(r"[\s\]},]*+(?:```[\w+-]*)?")
_LEFT_BEFORE = re.compile(
    r"(?:```[\w+-]*)?\s*(?:[\"'*#_]{0,4}\bmemories[\"'*_]{0,4}\s*:[*_]{0,2})?[\s\[{]*\Z", re.IGNORECASE
)
_ANNOUNCES = re.compile(
    r"\bjson\b|requested format|here(?: is|'s|’s) (?:my|the) (?:answer|response|reply|output)", re.I
)


def readable(text: str) -> str:
    """The text as a person can be shown it and UTF-8 can carry it: no control characters, no halves."""
    return _CONTROLS.sub(_shown, joined_surrogates(text))


def trimmed(text: str) -> str:
    """Without blank and invisible edges."""
    return text.strip(EDGES)


def _shown(match: re.Match[str]) -> str:
    return "\n" if match[0][0] in "\r\u2028\u2029" else ""


def first_turn(text: str) -> str:
    """Only this turn: what a missed stop token made the model write for others is cut off."""
    if (final := text.find(_FINAL_CHANNEL)) >= 0:
        text = text[final + len(_FINAL_CHANNEL) :]
    if opening := OPENING_TOKENS.match(text):
        text = text[opening.end() :]
    brace = text.find("{")
    for token in TURN_ENDS.finditer(text):
        before = text[max(0, token.start() - 40) : token.start()].rstrip(EDGES)
        inside_text = -1 < brace < token.start() and before[-1:] not in ("}", "]", "`", ")", ">")
        if before and not inside_text and token[0] != "</s>":
            return text[: token.start()]
    return text


def next_turn_begins(between: str) -> bool:
    """Whether another speaker's turn begins in what stands between two objects."""
    return TURN_ENDS.search(between) is not None or _NEXT_SPEAKER.search(between) is not None


def without_thoughts(text: str) -> str:
    """What follows the model's thinking, whether both tags, one or none of them were written."""
    while opened := THOUGHT_OPENS.match(text := text.lstrip(EDGES)):
        closed = THOUGHT_CLOSES.search(text, opened.end())
        if closed is None:
            return _trailing_answer(text)
        text = text[closed.end() :]
    brace, last = text.find("{"), None
    for closed in THOUGHT_CLOSES.finditer(text):
        if not -1 < brace < closed.start() or _ENDS_PASSAGE.match(text, closed.start()):
            last = closed
    if last is None:
        return text
    before, after = text[: last.start()], text[last.end() :]
    return after if trimmed(after) else before


def _trailing_answer(text: str) -> str:
    """The answer at the very end of thoughts that were never closed; empty where they just stop."""
    last = next(reversed(list(_LAST_ANSWER.finditer(text))), None)
    ended = text.rstrip(EDGES).endswith(("}", "```"))
    return text[last.start() :] if last is not None and ended else ""


def prose(text: str) -> str:
    """The sentences of a text out of which the objects were taken."""
    for opens, closes in _CALL_TAGS:
        text = _without_blocks(text, opens, closes)
    return trimmed(_LEFT_TAGS.sub("", text))


def unfenced(text: str) -> str:
    """As `prose`, without the marks that stood next to an object: fences, brackets, a label."""
    text = prose(text)
    if left := _LEFT_AFTER.match(text):
        text = text[left.end() :]
    return trimmed(text[:-60] + _LEFT_BEFORE.sub("", text[-60:]))


def announces(text: str) -> bool:
    """Whether the text only says that an answer in some format follows or precedes."""
    return len(text) < 200 and _ANNOUNCES.search(text) is not None


def _without_blocks(text: str, opens: str, closes: str) -> str:
    kept, position = [], 0
    while (start := text.find(opens, position)) >= 0:
        kept.append(text[position:start])
        end = text.find(closes, start)
        if end < 0:
            return "".join(kept)
        position = end + len(closes)
    return "".join([*kept, text[position:]])
