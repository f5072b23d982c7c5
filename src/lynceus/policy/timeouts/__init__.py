"""When to stop a run, and which value the model is trained on then."""
