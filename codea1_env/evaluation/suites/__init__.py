"""Tests of players, judged by reference and wrong programs: what `codea1 eval tests` runs."""
