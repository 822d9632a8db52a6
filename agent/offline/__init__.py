"""The stand-in for a language model: small, rule-based, at hand when none is configured.

`model` is a `Model` of the Agents SDK like any other: it calls the tools, reads their results and ends with
the answer as JSON, so that a whole turn runs for real without a key or a network. It keeps nothing between
calls: all it knows is in the instructions, the input and the tools it is given. `prompt` and `scene` read
them, `grammar` what was said, `calls` picks the tools, `known` gathers what is known then and
`dialogue` picks the words. `upkeep` does without a model what a model does after a turn: `weighing` for the
digest of a conversation, `stating` for what people state of themselves.
"""

NAME = "offline"
ANNOUNCEMENT = (
    "No language model is configured: this is Hachi's small rule-based stand-in. "
    "Set OPENAI_API_KEY or OPENAI_BASE_URL for a real one."
)
