"""The errors of the agent. `memory.errors` has `HachiError`, the root of all.

HachiError
├── SettingsError
├── BadInput
├── GuardrailTripped
├── ModelError
│   ├── ModelUnavailable
│   ├── ModelRejected
│   └── AnswerMisfit
└── memory.errors.MemoryFault
"""

from memory.errors import HachiError as HachiError


class SettingsError(HachiError):
    """A setting cannot be read or does not fit the others."""

    code = "settings"


class BadInput(HachiError):
    """An argument cannot be used."""

    status, code = 400, "bad_input"


class GuardrailTripped(HachiError):
    """A guardrail of the program stopped the turn."""

    status, code = 422, "guardrail"


class ModelError(HachiError):
    """The language model failed."""

    status, code = 502, "model_error"


class ModelUnavailable(ModelError):
    """The model does not answer: network, timeout, 5xx, too many requests."""

    status, code, retryable = 503, "model_unavailable", True


class ModelRejected(ModelError):
    """The model refuses: key, model name, request."""

    code = "model_rejected"


class AnswerMisfit(ModelError):
    """The answer does not have the form that was asked for."""

    code = "answer_misfit"
