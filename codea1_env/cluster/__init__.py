"""Many machines: sandboxes and judges on the nodes of a Ray cluster. Needs the extra ray."""

from .nodes import ClusterError
from .remote_judges import RemoteJudges
from .remote_sandbox import RemoteSandbox

__all__ = ["ClusterError", "RemoteJudges", "RemoteSandbox"]
