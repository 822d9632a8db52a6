"""Traces for OpenTelemetry: `spans` creates and sends them, `attributes` names their contents."""
