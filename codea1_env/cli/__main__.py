"""`python -m codea1_env.cli` is `codea1`."""

import sys

from codea1_env.cli import main

sys.exit(main())
