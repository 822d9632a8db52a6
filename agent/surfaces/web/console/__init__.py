"""The console: one person's pages, at `/`."""

from agent.surfaces.web.console import documents, memories, talk, tasks

console_pages = (talk.router, memories.router, tasks.router, documents.router)
