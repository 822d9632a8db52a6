"""Work after the reply and on a schedule: durable jobs, consolidation, periodic jobs, reminders."""
