"""What the model may do: plain typed functions, registered in one list in `tools.registry`."""
