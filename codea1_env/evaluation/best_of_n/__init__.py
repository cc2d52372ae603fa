"""Programs chosen by generated tests: what `codea1 eval best-of-n` runs."""
