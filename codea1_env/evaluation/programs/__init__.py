"""Programs of players, judged: what `codea1 eval code` runs."""
