"""What a referee judges with: rules, comparison, what answers contain, verdicts; and judging in many processes."""
