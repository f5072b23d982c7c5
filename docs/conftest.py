"""Pages whose Python needs what the commands before it have made; tests/docs/test_pages.py types both into a shell."""

collect_ignore = ["recurring.md"]
