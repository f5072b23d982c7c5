"""The routes of the HTTP server: documents, commands, events, sessions, pages."""
