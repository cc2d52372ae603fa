"""Keeps pytest out of the links at the top of the repository."""

# They point into codea1_env, where the same modules are collected under their real names.
collect_ignore = ["agents", "baselines", "sandbox"]
