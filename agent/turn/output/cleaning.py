"""Removes what models write around an answer: thoughts, channels, role tokens, leaked tool calls, fences."""

import re

from agent.turn.output.memories import trimmed

_THOUGHT = (
    r"(?:(?:seed:)?think|thinking|thoughts?|reasoning(?:_content)?|reflection|scratchpad|analysis|commentary)"
)
_FINAL = r"<\|channel\|>\s*final[^<{]{0,40}(?:<\|constrain\|>\s*\w{0,20}\s*)?<\|message\|>"
THOUGHT_OPENS = re.compile(
    rf"[<◁]({_THOUGHT})[>▷]|\[THINK\]|<\|channel\|>\s*(?:analysis|commentary)\b", re.IGNORECASE
)
THOUGHT_CLOSES = re.compile(rf"[<◁]/{_THOUGHT}[>▷]|\[/THINK\]|{_FINAL}", re.IGNORECASE)
# After a brace, a closing tag counts at the end of a passage, not where a sentence mentions it.
_ENDS_PASSAGE = re.compile(
    rf"(?:(?<=\n)|(?<=\n )|(?<=\}}))(?:{THOUGHT_CLOSES.pattern})"
    rf"|(?:{THOUGHT_CLOSES.pattern})[ \t]*(?:[\n{{`]|\Z)",
    re.IGNORECASE,
)
_THOUGHT_AFTER = re.compile(rf"(?<=[}}`])\s*<({_THOUGHT})>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_STEPS = re.compile(r"\A(?:Question|Thought|Action):.*^Final Answer:", re.DOTALL | re.MULTILINE)
_FINAL_CHANNEL = re.compile(rf"(?s:{_FINAL}|\A(?:assistant)?analysis(?=[A-Z]).{{0,20000}}?assistantfinal)")
_LAST_ANSWER = re.compile(r"(?m:^|\|message\|>)[ \t]*(?:```\w*\s{0,9})?\{\s{0,99}[\"']message[\"']\s{0,9}:")

_OPENER = (
    r"</?s>|<bos>|<start_of_turn>"
    r"|<\|(?:im_start|begin_of_text|start_header_id|end_header_id|start|python_tag|assistant)\|>"
)
OPENING_TOKENS = re.compile(rf"\s*(?:(?:{_OPENER})\s*(?:(?:assistant|model)\b\s*)?|{_FINAL})+")
TURN_ENDS = re.compile(
    r"<\|(?:im_end|im_start|eot_id|eom_id|end|endoftext|end_of_text|end_of_turn|start_header_id|start|return|call"
    r"|user|assistant)\|>|<(?:end|start)_of_turn>|</s>|\[/?INST\]"
)
NEXT_TURN = re.compile(
    rf"{TURN_ENDS.pattern}|^[#>*_ \t]{{0,6}}(?i:user|human|instruction)[*_ \t]{{0,4}}:", re.MULTILINE
)
"""Where another speaker's turn begins."""
_LEAKED = re.compile(
    r"<(tool_calls?|function_calls?|function|invoke)(?=[>= ]).*?(?:</\1>|\Z)"
    r"|<[|｜]tool[▁_]calls?(?:[▁_]section)?[▁_]begin[|｜]>.*?(?:<[|｜]tool[▁_]calls(?:[▁_]section)?[▁_]end[|｜]>|\Z)"
    r"|```tool_(?:code|call)\b.*?(?:```|\Z)"
    r"|</?(?:tool_calls?|function_calls?|function|response|answer|output|json|final|message|memories)>|\[TOOL_CALLS\]"
    r"|<[|｜][A-Za-z_▁]{1,40}[|｜]>|</s>",
    re.DOTALL,
)
_LEFT_AFTER = re.compile(r"\A[\s\]},]*+(?:```[\w+-]*)?")
_LEFT_BEFORE = re.compile(
    r"(?:```[\w+-]*)?\s*(?:[\"'*#_]{0,4}\b(?:message|answer|memories)[\"'*_]{0,4}\s*[:=][*_]{0,2})?"
    r"\s*(?:```[\w+-]*)?[\s\[{]*\Z",
    re.IGNORECASE,
)


def cleaned(text: str) -> str:
    """Return the answer of this turn, without thoughts, whether the model wrote both tags, one or none."""
    text = _THOUGHT_AFTER.sub("", _STEPS.sub("", trimmed(first_turn(text))))
    while opened := THOUGHT_OPENS.match(text := trimmed(text)):
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
    return trimmed(text[last.end() :]) or trimmed(text[: last.start()])


def first_turn(text: str) -> str:
    """Return this turn's final channel only, without the turns of others that the model wrote after a missed
    stop token."""
    _, *finals = _FINAL_CHANNEL.split(text.partition("<|start|>user")[0] if "<|channel|>" in text else text)
    if len(finals) > 1:
        finals = [turn for final in finals if trimmed(turn := first_turn(final))]
        return "\n".join(finals if any("{" in turn for turn in finals) else finals[-1:])
    text = finals[0] if finals else text
    if opening := OPENING_TOKENS.match(text):
        text = text[opening.end() :]
    if THOUGHT_OPENS.match(text):
        return text
    brace = text.find("{")
    for token in TURN_ENDS.finditer(text):
        before = trimmed(text[max(0, token.start() - 40) : token.start()])
        inside_text = -1 < brace < token.start() and before[-1:] not in ("}", "]", "`", ")", ">")
        if before and not inside_text and token[0] != "</s>":
            return text[: token.start()]
    return text


def _trailing_answer(text: str) -> str:
    """Return the answer at the very end of thoughts that were never closed; empty if there is none."""
    *_, last = (0, *(found.start() for found in _LAST_ANSWER.finditer(text)))
    answer = prose(text[last:]) if last else ""
    return answer if answer.endswith(("}", "```")) else ""


def prose(text: str) -> str:
    """Return the sentences of a text from which the objects were removed, without leaked calls."""
    return trimmed(_LEAKED.sub("", text))


def unfenced(text: str) -> str:
    """Return the text as `prose` does, without the marks next to an object: fences, brackets, a label."""
    text = _LEFT_AFTER.sub("", prose(text), count=1)
    # Only the last characters are searched for the end, to keep this cheap.
    return trimmed(text[:-60] + _LEFT_BEFORE.sub("", text[-60:]))
