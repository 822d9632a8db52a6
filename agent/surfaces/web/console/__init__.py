"""The console: one person's pages, at `/`."""

from agent.surfaces.web.console import documents, forgetting, memories, talk, tasks

console_pages = (talk.router, forgetting.router, memories.router, tasks.router, documents.router)
