"""Models of several tasks with descriptions of the tasks, mainly of their training data."""
