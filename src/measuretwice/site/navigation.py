"""One navigation, mkdocs.yml's, for two sites: what mkdocs reads is made of it for each.

Where a file of settings inherits another, mkdocs replaces a list and Zensical adds to it. So the whole
navigation stands in mkdocs.yml, and what is read is a copy of that file: for students the pages that only
instructors may read are left out of it. Pure: text in, text out.
"""

from __future__ import annotations

import json
import re

from measuretwice.base.errors import UserError

# The folder, below docs/, of pages that only instructors may read; and that of all pages for them,
# which a students' release leaves out.
KEY = "instructors/key"
INSTRUCTORS = "instructors"


def navigation(settings: str) -> str:
    """Return the `nav` of mkdocs.yml's text: from that line to the next setting.

    UserError where it has none.
    """
    match = re.search(r"^nav:\n(?:[ #].*\n|\n)*", settings, re.MULTILINE)
    if match is None:
        raise UserError("mkdocs.yml: there is no nav")
    return match[0]


def feedback(settings: str) -> str:
    """Return where readers say what is wrong, as mkdocs.yml's text has it; empty where it doesn't."""
    match = re.search(r"^  feedback: *[\"']?([^\"'\n#]*?)[\"']? *(?:#.*)?$", settings, re.MULTILINE)
    return match[1] if match else ""


def _with_foot(settings: str) -> str:
    """The text with the setting by which the theme puts a link to that place into every page's foot."""
    address = feedback(settings)
    if not address or "\n  social:\n" in settings:
        return settings
    icon = "material/message-alert-outline"
    lines = (
        f"  social:\n    - icon: {icon}\n      link: {json.dumps(address)}\n      name: Feedback\n"
    )
    return re.sub(r"^extra:\n", lambda match: match[0] + lines, settings, flags=re.MULTILINE)


def module_pages(nav: str, folder: str) -> list[str]:
    """The names of a module's pages below modules/`folder`/, in the order of the navigation."""
    return re.findall(rf"modules/{re.escape(folder)}/([\w-]+)\.md", nav)


def release_settings(settings: str) -> str:
    """Return mkdocs.yml's text as a students' release has it: its navigation has no page for instructors."""
    nav = navigation(settings)
    lines = _without(nav.splitlines(keepends=True), f" {INSTRUCTORS}/")
    own = _with_foot(settings.replace(nav, "".join(lines)))
    return re.sub(r"\A(#.*\n)+", "# The settings of the site of a students' release.\n", own)


def _without(lines: list[str], folder: str) -> list[str]:
    """The lines of a navigation but those with `folder`, and sections of which nothing is left."""
    rest: list[str] = []
    below = ""
    for line in reversed(lines):
        is_entry = line.lstrip().startswith("- ")
        empty = is_entry and line.rstrip().endswith(":") and _depth(below) <= _depth(line)
        if folder in line or empty:
            continue
        rest.append(line)
        below = line if is_entry else below
    return rest[::-1]


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def site_settings(settings: str, pages: str, *, instructor: bool) -> str:
    """Return the text of the file beside the folder `pages`, in build/, that mkdocs reads."""
    nav = navigation(settings)
    if instructor:
        settings = re.sub(
            r"^site_name: .*", r"\g<0>, for instructors", settings, flags=re.MULTILINE
        )
    else:
        own = _without(nav.splitlines(keepends=True), f"{KEY}/")
        settings = settings.replace(nav, "".join(own))
    settings = _with_foot(re.sub(r"\A(#.*\n)+", "", settings))
    return f"# Made by ./lab docs from mkdocs.yml.\ndocs_dir: {pages}\n{settings}"
