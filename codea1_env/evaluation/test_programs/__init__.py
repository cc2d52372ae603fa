"""Tests that are programs: the evaluation takes them as they are, whatever they consist of.

In the game a test is data. Suites that were written elsewhere, and the tests that are kept for people to read,
are Python: asserts, functions, loops, classes. Here they are taken out of an answer (`splitting`), and judged by
what the reference does with them (`ruling`).
"""
