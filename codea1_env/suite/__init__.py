"""codea1-suite: frozen tasks with ids, in worlds whose faults are known, for any library that trains two players.

    from codea1_env import suite

    for id in suite.IDS["v1"]:
        env = suite.make(id, seed=0, record="runs/mine")    # PettingZoo, parallel; the environment records by itself
        train(env)                                          # until suite.episodes(id) episodes have been played

`codea1 suite run` plays the ids with an algorithm of this project, `codea1 suite score` makes scores of records.
"""

from codea1_env.suite.environments import make as make
from codea1_env.suite.tasks import IDS as IDS
from codea1_env.suite.tasks import SuiteError as SuiteError
from codea1_env.suite.tasks import find_task


def episodes(id: str, version: str = "v1") -> int:
    """Return how many episodes of an id a record has.

    Example:
        >>> episodes("rare-faults/0")
        20480
    """
    return find_task(id, version).episodes
