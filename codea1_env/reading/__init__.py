"""Model text -> data: the language of the game.

What lies here reads hostile text. It runs in the analysis process (`Sandbox.analyse`), with the standard library
and `codea1_env.sandbox.inside` only.
"""
