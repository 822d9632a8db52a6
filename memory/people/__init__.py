"""What is known of a person: profile, tasks, reminders that are due; and the settings of a place."""
