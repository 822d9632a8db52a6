"""The stand-in for a language model: small, rule-based, at hand when none is configured.

`model` is a `Model` of the Agents SDK like any other: it calls the tools, reads their results and ends with
the answer as JSON, so that a whole turn runs for real without a key or a network. It keeps nothing between
calls: all it knows is in the instructions, the input and the tools it is given. `scene` reads them, `grammar`
what was said, `calls` picks the tools and `dialogue` the words.
"""

NAME = "offline"
ANNOUNCEMENT = (
    "No language model is configured: this is Hachi's small rule-based stand-in. "
    "Set OPENAI_API_KEY or OPENAI_BASE_URL for a real one."
)
