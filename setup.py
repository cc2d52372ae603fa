"""The description for a package index: README.md, without what only a repository has. All else is in setup.cfg."""

import re
from pathlib import Path

from setuptools import setup

readme = Path(__file__).with_name("README.md").read_text("utf-8")
# An index has no other files: a picture of the repository goes, and of a link to a file its words stay.
readme = re.sub(r"^!\[[^]]*\]\((?!\w+:)[^)]*\)\n\n", "", readme, flags=re.MULTILINE)
readme = re.sub(r"\[([^]]*)\]\((?!\w+:)[^)]*\)", r"\1", readme)

readme += "\nThe files that this page names (docs, examples, benchmarks) are in the source distribution.\n"

setup(long_description=readme)
