"""What the companion knows about a person: profile, tasks and due reminders; and the settings of a place."""
