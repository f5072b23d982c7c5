"""The sections of a job file, one pydantic class each. Field descriptions become the JSON Schema that editors read."""
