"""What the analysis process does: reads tests, and what counts as plain data in a text."""
