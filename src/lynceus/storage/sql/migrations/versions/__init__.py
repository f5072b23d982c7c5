"""One module per change, oldest first."""
