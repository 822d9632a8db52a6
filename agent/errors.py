"""The errors a caller sees, as a tree. `HachiError`, whose fields say what to do, is in `memory.errors`.

HachiError                    anything below; its text is one line that says what to do
├── SettingsError             a setting cannot be read or does not fit the others
├── BadInput                  what was handed in cannot be used
├── GuardrailTripped          a guardrail of the program stopped the turn
├── ModelError                the language model
│   ├── ModelUnavailable      it does not answer: network, time-out, 5xx, too many requests
│   ├── ModelRejected         it answers and refuses: key, model name, request
│   └── AnswerMisfit          its answer does not have the form that a client asked for
└── memory.errors.MemoryFault what is remembered
"""

from memory.errors import HachiError

__all__ = [
    "AnswerMisfit",
    "BadInput",
    "GuardrailTripped",
    "HachiError",
    "ModelError",
    "ModelRejected",
    "ModelUnavailable",
    "SettingsError",
]


class SettingsError(HachiError):
    code = "settings"


class BadInput(HachiError):
    status, code = 400, "bad_input"


class GuardrailTripped(HachiError):
    status, code = 422, "guardrail"


class ModelError(HachiError):
    status, code = 502, "model_error"


class ModelUnavailable(ModelError):
    status, code, retryable = 503, "model_unavailable", True


class ModelRejected(ModelError):
    code = "model_rejected"


class AnswerMisfit(ModelError):
    code = "answer_misfit"
