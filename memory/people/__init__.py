"""What is known about a person: profile, tasks and due reminders; and the settings of a place."""
