"""The routes that speak OpenAI's API."""
