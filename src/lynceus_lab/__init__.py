"""The laboratory: declared experiments on measured tables, compared with what was published."""
