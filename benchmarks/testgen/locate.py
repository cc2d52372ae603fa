"""Print where a function or class stands: its module, its file, its first and its last line.

PYTHONPATH=SITE python locate.py PACKAGE.MODULE::NAME
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys


def main() -> None:
    module, _, name = sys.argv[1].partition("::")
    found = inspect.unwrap(getattr(importlib.import_module(module), name))
    lines, first = inspect.getsourcelines(found)
    place = {
        "module": found.__module__,
        "name": found.__name__,
        "file": inspect.getsourcefile(found),
        "first": first,
        "last": first + len(lines) - 1,
        "docstring": inspect.getdoc(found) or "",
    }
    print(json.dumps(place))


if __name__ == "__main__":
    main()
