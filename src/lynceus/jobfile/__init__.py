"""Job files: YAML → problem, policy, executor and notifications. Every error is one sentence with file, line and field."""
