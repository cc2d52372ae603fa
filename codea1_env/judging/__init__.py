"""What a referee judges with: rules, comparison, what answers contain, and verdicts."""
