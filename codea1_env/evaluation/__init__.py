"""Measuring players: so far on what training holds back."""

from codea1_env.evaluation.held_out import HeldOut, hold_out, kill_rate, pass_rate

__all__ = ["HeldOut", "hold_out", "kill_rate", "pass_rate"]
