"""What bots share, whatever the platform."""
