"""Why a memory, or what somebody said, was given to the model or not: every gate that it met."""
