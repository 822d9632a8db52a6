"""Remove what models write around an answer: thoughts, channels, role tokens, leaked tool calls, fences."""

import re

from agent.turn.output.written_memory import EDGES

_THOUGHT = r"(?:think|thinking|thoughts?|reasoning(?:_content)?|reflection|scratchpad|analysis|commentary)"
_FINAL = r"<\|channel\|>\s*final[^<{]{0,40}(?:<\|constrain\|>\s*\w{0,20}\s*)?<\|message\|>"
THOUGHT_OPENS = re.compile(
    rf"[<◁](?:seed:)?{_THOUGHT}[>▷]|\[THINK\]|<\|channel\|>\s*(?:analysis|commentary)\b", re.IGNORECASE
)
THOUGHT_CLOSES = re.compile(rf"[<◁]/(?:seed:)?{_THOUGHT}[>▷]|\[/THINK\]|{_FINAL}", re.IGNORECASE)
_THOUGHT_AFTER = re.compile(rf"(?<=[}}`])\s*<{_THOUGHT}>.*\Z", re.DOTALL | re.IGNORECASE)
_LAST_ANSWER = re.compile(r"(?m:^|\|message\|>)[ \t]*(?:```\w*\s{0,9})?\{\s{0,99}[\"']message[\"']\s{0,9}:")
_OPENER = (
    r"</?s>|<bos>|<start_of_turn>"
    r"|<\|(?:im_start|begin_of_text|start_header_id|end_header_id|start|assistant)\|>"
)
_FINALS = re.compile(rf"{_FINAL}|\A(?:assistant)?analysis(?=[A-Z])(?s:.{{0,20000}}?)assistantfinal")
OPENING_TOKENS = re.compile(rf"\s*(?:(?:{_OPENER})\s*(?:(?:assistant|model)\b\s*)?|{_FINAL})+")
TURN_ENDS = re.compile(
    r"<\|(?:im_end|im_start|eot_id|eom_id|end|endoftext|end_of_text|end_of_turn|start_header_id|start|return|call"
    r"|user|assistant)\|>|<(?:end|start)_of_turn>|</s>|\[/?INST\]"
    r"|(?<=[}\]`])[\s#*_]{0,9}(?i:user|human|instruction)[*_ \t]{0,4}:"
)
"""Where another speaker's turn begins, after a stop token that the model missed."""
_LEAKED = re.compile(
    r"<(tool_calls?|function_calls?|function|invoke)(?=[>= ]).*?(?:</\1>|\Z)"
    r"|<[|｜]tool[▁_]calls?(?:[▁_]section)?[▁_]begin[|｜]>.*?(?:<[|｜]tool[▁_]calls(?:[▁_]section)?[▁_]end[|｜]>|\Z)"
    r"|</?(?:tool_calls?|function|response|answer|output|json|final|message|memories)>|\[TOOL_CALLS\]"
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
    text = _THOUGHT_AFTER.sub("", _first_turn(text).strip(EDGES))
    while opened := THOUGHT_OPENS.match(text):
        closed = THOUGHT_CLOSES.search(text, opened.end())
        if closed is None:  # an answer may stand at the end of thoughts that were never closed
            *_, last = (len(text), *(one.start() for one in _LAST_ANSWER.finditer(text)))
            answer = prose(text[last:])
            return answer if answer.endswith(("}", "```")) else ""
        text = text[closed.end() :].strip(EDGES)
    brace = text.find("{")
    for closed in reversed([*THOUGHT_CLOSES.finditer(text)]):
        # after a brace a tag counts on a line of its own, not where a sentence mentions it
        alone = text[closed.start() - 1] in "\n}" or text[closed.end() :][:1] in ("\n", "{", "`", "")
        if not -1 < brace < closed.start() or alone:
            return text[closed.end() :].strip(EDGES) or text[: closed.start()].strip(EDGES)
    return text


def _first_turn(text: str) -> str:
    """Return the text up to another speaker's turn, or the last final channel of this one's."""
    if _FINALS.search(text):
        text, *finals = _FINALS.split(text.partition("<|start|>user")[0])
        text = next((final for final in reversed(finals) if final.strip(EDGES)), text)
    if opening := OPENING_TOKENS.match(text):
        text = text[opening.end() :]
    if THOUGHT_OPENS.match(text):
        return text
    brace = text.find("{")
    for token in TURN_ENDS.finditer(text):
        before = text[max(0, token.start() - 40) : token.start()].strip(EDGES)
        inside_text = -1 < brace < token.start() and before[-1:] not in ("}", "]", "`", ")", ">")
        if before and not inside_text and token[0] != "</s>":
            return text[: token.start()]
    return text


def prose(text: str) -> str:
    """Return the sentences of a text, without leaked calls."""
    return _LEAKED.sub("", text).strip(EDGES)


def beside_object(text: str) -> str:
    """Return the sentences beside an object, without the marks next to it: fences, brackets, a label."""
    text = _AFTER.sub("", prose(text), count=1)
    # Only the last characters are searched for the end, to keep this cheap.
    return (text[:-60] + _BEFORE.sub("", text[-60:])).strip(EDGES)
