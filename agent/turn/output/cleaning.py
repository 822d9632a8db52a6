"""Remove what models write around an answer: thoughts, channels, role tokens, leaked tool calls, fences."""

import re

from agent.turn.output.answer import EDGES

_THOUGHT = r"(?:think|thinking|thoughts?|reasoning(?:_content)?|reflection|scratchpad|analysis|commentary)"
_FINAL = r"<\|channel\|>\s*final[^<{]{0,40}(?:<\|constrain\|>\s*\w{0,20}\s*)?<\|message\|>"
THOUGHT_OPENS = re.compile(
    rf"[<◁](?:seed:)?{_THOUGHT}[>▷]|\[THINK\]|<\|channel\|>\s*(?:analysis|commentary)\b", re.IGNORECASE
)
THOUGHT_CLOSES = re.compile(rf"[<◁]/(?:seed:)?{_THOUGHT}[>▷]|\[/THINK\]|{_FINAL}", re.IGNORECASE)
_CLOSES = re.compile(rf"(?:{THOUGHT_CLOSES.pattern})(?=\s*(?:\n|\{{|`|\Z))", re.IGNORECASE)
"""Matches a closing tag, but not one that a sentence mentions."""
_THOUGHT_AFTER = re.compile(rf"(?<=[}}`])\s*<{_THOUGHT}>.*\Z", re.DOTALL | re.IGNORECASE)
_FINALS = re.compile(rf"{_FINAL}|\A(?:assistant)?analysis(?=[A-Z])(?s:.{{0,20000}}?)assistantfinal")
_OPENER = (
    r"</?s>|<bos>|<start_of_turn>"
    r"|<\|(?:im_start|begin_of_text|start_header_id|end_header_id|start|assistant)\|>"
)
OPENING_TOKENS = re.compile(rf"\s*(?:(?:{_OPENER})\s*(?:(?:assistant|model)\b\s*)?|{_FINAL})+")
_TURN_ENDS = re.compile(
    r"(?:<\|(?:im_end|im_start|eot_id|eom_id|end|endoftext|end_of_text|end_of_turn|start_header_id|start|return|call"
    r"|user|assistant)\|>|<(?:end|start)_of_turn>|</s>|\[/?INST\])(?=\s*(?:\n|\Z|<|user|assistant))"
    r"|(?<=[}\]`])[\s#*_]{0,9}(?i:user|human|instruction)[*_ \t]{0,4}:"
)
"""Where another speaker's turn begins, after a stop token that the model missed."""
_LEAKED = re.compile(
    r"<(tool_calls?|function_calls?|function|invoke)(?=[>= ]).*?(?:</\1>|\Z)"
    r"|<[|｜]tool[▁_]calls?(?:[▁_]section)?[▁_]begin[|｜]>.*?(?:<[|｜]tool[▁_]calls(?:[▁_]section)?[▁_]end[|｜]>|\Z)"
    r"|</?(?:tool_calls?|function|response|answer|output|json|final|message|memories|think)>|\[TOOL_CALLS\][^\n]*"
    r"|<[|｜][A-Za-z_▁]{1,40}[|｜]>|</s>",
    re.DOTALL,
)
_AFTER = re.compile(r"\A[\s\]},;]*+(?:```[\w+-]*)?")
_BEFORE = re.compile(
    r"(?:```\w*)?\s*(?:[\"'*#_]{0,4}\b(?:message|answer|memories)[\"'*_]{0,4}\s*[:=]?[*_]{0,2})?\s*(?:```\w*)?[\s\[{]*\Z",
    re.IGNORECASE,
)


def cleaned(text: str) -> str:
    """Return the answer of this turn, without thoughts, whether the model wrote both tags, one or none."""
    *drafts, final = _FINALS.split(text.partition("<|start|>user")[0])
    text = next((part for part in (final, *reversed(drafts)) if part.strip(EDGES)), text)
    if opening := OPENING_TOKENS.match(text):
        text = text[opening.end() :]
    while opened := THOUGHT_OPENS.match(text := text.strip(EDGES)):
        if (closed := THOUGHT_CLOSES.search(text, opened.end())) is None:
            # there may be an answer at the end of thoughts that were never closed
            answer = _TURN_ENDS.split(text[text.rfind('{"message"') :], maxsplit=1)[0].strip(EDGES)
            return answer if answer.endswith(("}", "```")) and answer.startswith("{") else ""
        text = text[closed.end() :]
    text = _THOUGHT_AFTER.sub("", _TURN_ENDS.split(text, maxsplit=1)[0])
    *_, last = (0, *(one.end() for one in (_CLOSES if "{" in text else THOUGHT_CLOSES).finditer(text)))
    return text[last:].strip(EDGES) or text.strip(EDGES)


def prose(text: str) -> str:
    """Return the sentences of a text, without leaked calls."""
    return _LEAKED.sub("", text).strip(EDGES)


def beside_object(text: str) -> str:
    """Return the sentences around an object, without the marks next to it: fences, brackets, a label."""
    text = _AFTER.sub("", prose(text), count=1)
    # Only the last characters are searched for the end, to keep this cheap.
    return (text[:-60] + _BEFORE.sub("", text[-60:])).strip(EDGES)
