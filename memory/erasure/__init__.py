"""What goes away: expiry, clean-up, deletion, and the erasure of a person."""
