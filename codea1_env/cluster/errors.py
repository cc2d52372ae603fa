"""What is wrong with a cluster, rather than with a program."""

from __future__ import annotations

from codea1_env.sandbox import SandboxError


class ClusterError(SandboxError):
    """There is no cluster, or none of its nodes can contain programs. The message says what to do."""
