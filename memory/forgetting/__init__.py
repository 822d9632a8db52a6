"""Hidden, then gone: forgetting, a client's edits, making private, erasing a person, expiry.

`reach` says what goes with a fact or a message; `forget` hides that, and shows it again; `purge` deletes for
good what has been hidden long enough or has expired; `person` erases a person with both.
"""
