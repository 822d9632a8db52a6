"""Hide rows and later purge them: forgetting, a client's edits, making private, erasing a person, expiry.

`cascade` computes the affected rows. `forget_and_undo` hides and restores them. `purge` deletes hidden rows
after the time to undo, and expired ones. `erasure` hides and purges all rows of a person.
"""
