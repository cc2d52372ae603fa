"""Keeps pytest out of the links at the top of the repository."""

# The links point into codea1_env, where the same modules are collected under their real names. This file
# itself has no examples to collect, and tests/conftest.py has its name.
collect_ignore = ["agents", "baselines", "sandbox", "conftest.py"]
