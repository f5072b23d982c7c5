"""YAML files of users: every value has a file and a line, and every error is one sentence."""
