"""Which node of a cluster has how many judges: as many as it has workers, also where nodes join and leave."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from typing import Any

from codea1_env.cluster.errors import ClusterError
from codea1_env.cluster.nodes import LostError, Node, nodes

_log = logging.getLogger(__name__)


class Seats:
    """Seats for judges on the nodes that there are. Threads may share it.

    Args:
        ray: What `connect` returned.
        workers: How many judges a node is to have; None for one per processor.

    Raises:
        ClusterError: No node has a processor.
    """

    def __init__(self, ray: Any, workers: int | None) -> None:
        self._ray = ray
        self._workers = workers
        self._lock = threading.Lock()
        self._taken: Counter[str] = Counter()
        self._refused: set[str] = set()
        self._there: list[Node] = []
        if not self.look():
            raise ClusterError(
                "Expect a cluster with processors, actually: none of its nodes has any"
            )
        self._first = {node.id for node in self._there}

    def look(self) -> int:
        """See which nodes there are; how many judges are to work on them."""
        there = nodes(self._ray)
        with self._lock:
            self._there = [node for node in there if node.id not in self._refused]
            return sum(map(self._wanted, self._there))

    def take(self) -> Node:
        """Take a seat where most are free in proportion.

        Raises:
            LostError: No node is left.
        """
        self.look()
        with self._lock:
            if not self._there:
                raise LostError("no node is left")
            node = min(
                self._there, key=lambda each: (self._taken[each.id] + 1) / self._wanted(each)
            )
            self._taken[node.id] += 1
            return node

    def leave(self, node: Node) -> None:
        """Give a seat back."""
        with self._lock:
            self._taken[node.id] -= 1

    def leave_crowded(self, node: Node) -> bool:
        """Give a seat back if the node has more judges than it is to have, and another one fewer."""
        with self._lock:
            free = any(self._taken[each.id] < self._wanted(each) for each in self._there)
            crowded = any(
                each.id == node.id and self._taken[each.id] > self._wanted(each)
                for each in self._there
            )
            if free and crowded:
                self._taken[node.id] -= 1
            return free and crowded

    def refuse(self, node: Node, error: ClusterError) -> None:
        """Leave out a node that cannot have a judge.

        Raises:
            ClusterError: It was there at the beginning: then whoever has made the cluster is to know.
        """
        if node.id in self._first:
            raise error
        _log.warning("%s", error)
        with self._lock:
            self._refused.add(node.id)

    def _wanted(self, node: Node) -> int:
        return node.cores if self._workers is None else self._workers
