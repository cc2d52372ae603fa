"""What runs in the sandboxed processes. Standard library only; nothing here imports from outside this folder.

The processes are started without site-packages, so that they load this folder as a top-level package.
"""
