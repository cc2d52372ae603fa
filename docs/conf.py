"""The site: Sphinx reads the pages of this folder, which are plain Markdown, and makes the others itself.

    make docs

Made into `_made/`, which git does not know: a page for each row of docs/api.md, with what the docstrings say, and a page for
each file of the repository that pages link to, so that every link of a page leads to the same thing on the site as in a checkout.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sphinx.ext.napoleon import Config, GoogleDocstring

import codea1_env

if TYPE_CHECKING:
    from sphinx.application import Sphinx

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
MADE = HERE / "_made"

project = "codea1_env"
author = "The codea1_env contributors"
project_copyright = f"{author}, Apache-2.0"
version = release = codea1_env.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["README.md"]  # index.md shows it
html_theme = "furo"
html_title = "codea1_env"
html_copy_source = False
html_show_sourcelink = False
html_show_search_summary = (
    False  # it fetches pages, which browsers refuse where the site is opened as files
)
# What gallery.py has made, if it was asked to.
html_extra_path = [str(path) for path in [ROOT / "build" / "gallery"] if path.is_dir()]

myst_heading_anchors = 4
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_default_options = {"members": True}

# Links between pages, and the names of public things, must lead somewhere. Types of other libraries, and ours that nobody is
# promised, are shown without a link: no inventory of another site is fetched.
nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]

_LINK = re.compile(r"\]\(((?:\.\./)+)([\w./-]+?)(#[\w-]+)?\)")


def setup(app: Sphinx) -> None:
    """Register what is done before pages are read, while they are, and with docstrings."""
    app.connect("builder-inited", _make_pages)
    app.connect("source-read", _lead_links_to_the_site)
    app.connect("autodoc-process-docstring", _read_google_style)


def _make_pages(app: Sphinx) -> None:
    """Write a page for each row of the table of public names, and for each file that pages link to."""
    table = (HERE / "api.md").read_text("utf-8")
    groups = re.findall(r"^\| ([^|]+) \| `(codea1_env[.\w]*)` \| (.+) \|$", table, re.MULTILINE)
    made = {
        f"api/{title.replace(' ', '_')}.rst": _documented(title.capitalize(), home, names)
        for title, home, names in groups
    }
    for page in HERE.rglob("*.md"):
        if MADE in page.parents:
            continue
        for up, path, _ in _LINK.findall(page.read_text("utf-8")):
            file = (page.parent / up / path).resolve()
            if HERE not in file.parents:
                made[f"files/{path.removesuffix('.md')}.md"] = _shown(path)
    for name, text in made.items():
        _write(MADE / name, text)
    for path in MADE.rglob("*.*"):
        if path.is_file() and str(path.relative_to(MADE)) not in made:
            path.unlink()


def _documented(title: str, home: str, row: str) -> str:
    """Return a page with the docstrings of a row's names."""
    module = importlib.import_module(home)
    names = re.findall(r"`([A-Za-z_]\w*)`", row)
    if "__all__" in names:
        names = list(module.__all__)
    parts = [title, "=" * len(title), "", f"From ``{home}``.", ""]
    for name in names:
        if hasattr(module, name):
            thing = getattr(module, name)
            parts += [f".. {_directive(thing)}:: {home}.{name}", ""]
            if dataclasses.is_dataclass(thing):  # settings inherit their fields by groups
                parts[-1:] = ["   :inherited-members:", ""]
            if isinstance(thing, dict):
                parts[-1:] = ["   :no-value:", "", f"   {', '.join(map(str, thing))}", ""]
    return "\n".join(parts)


def _directive(thing: object) -> str:
    if inspect.isclass(thing):
        return "autoexception" if issubclass(thing, BaseException) else "autoclass"
    return "autofunction" if callable(thing) else "autodata"


def _shown(path: str) -> str:
    """Return a page that shows a file of the repository."""
    text = (ROOT / path).read_text("utf-8")
    if path.endswith(".md"):
        text = text.replace("](docs/", "](/")
    else:
        language = "python" if path.endswith(".py") else "text"
        text = f"# {path}\n\n````{language}\n{text}````\n"
    return f"---\norphan: true\n---\n\n{text}"


def _write(path: Path, text: str) -> None:
    """Write a page, if it is not there as it should be: what is not touched is not read again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text("utf-8") != text:
        path.write_text(text, "utf-8")


def _lead_links_to_the_site(app: Sphinx, page: str, source: list[str]) -> None:
    """Have links to files of the repository lead to the pages that show them."""
    folder = (HERE / page).parent
    if page == "index":  # an include would not come by here
        app.env.note_dependency("README.md")
        source[0] = (HERE / "README.md").read_text("utf-8") + source[0]

    def on_the_site(link: re.Match[str]) -> str:
        up, path, anchor = link.groups()
        if HERE in (folder / up / path).resolve().parents:
            return link[0]
        return f"](/_made/files/{path.removesuffix('.md')}.md{anchor or ''})"

    source[0] = _LINK.sub(on_the_site, source[0])


def _read_google_style(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]
) -> None:
    """Read sections such as "Args:". Not of attributes, where napoleon takes any colon for the end of a type."""
    if what == "data" and "\n".join(lines).strip() == inspect.getdoc(type(thing)):
        lines.clear()  # what Python says of its dictionaries
    elif what not in ("attribute", "data", "property"):
        settings = Config(napoleon_use_rtype=False, napoleon_use_ivar=True)
        lines[:] = GoogleDocstring(list(lines), settings, app, what, name, thing, options).lines()
