"""Traces for OpenTelemetry: `spans` makes and sends them, `attributes` names what they hold."""
