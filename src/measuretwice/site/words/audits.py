"""Published tables, audited while the site is made."""

from __future__ import annotations

from measuretwice.audit import NAMES, audit_table, read_rate_bps
from measuretwice.audit.text import lines_of
from measuretwice.base.errors import UserError
from measuretwice.facts import table
from measuretwice.site.words.blocks import Block, verbatim
from measuretwice.site.words.registry import site_word
from measuretwice.site.words.subjects import SiteWords


@site_word('audit("docs/reference/audit-example.csv", rate="10gbit")', name="audit")
def audit_printed(site: SiteWords, file: str, rate: str = "") -> Block:
    """What `./lab audit` prints of a table, from the checkout's top."""
    path = site.root / file
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    report = audit_table(content, path.name, rate_bps=read_rate_bps(rate) if rate else None)
    return Block(verbatim("\n".join(lines_of(report)), "text", wrapped=True))


@site_word("audit_names", fact=True)
def audit_names(_: SiteWords) -> Block:
    """What a column of an audited table can be, as a table: the commonest first."""
    # Headings are tried the other way round: the rare before the common.
    names = reversed(NAMES.values())
    return Block(table(("name", "is"), ((f"`{name.name}`", name.help) for name in names)))
