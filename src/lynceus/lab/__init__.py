"""The lab: declared experiments on measured tables, run anywhere, kept as traces, judged against what was published."""
