"""Hidden, then gone: forgetting, a client's edits, making private, erasing a person, expiry.

`cascade` says what goes; `forget_and_undo` hides and restores it; `purge` deletes what was hidden long enough
or expired; `erasure` does both for a person.
"""
