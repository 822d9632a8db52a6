"""What surfaces call besides talking."""
