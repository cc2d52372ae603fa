"""Diagnostics: what a learned adversary is good for, one question at a time, in worlds whose faults are known exactly."""
