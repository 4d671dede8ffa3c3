"""What a page says of the kit's own measurements: records that can't be read end in one line."""

from pathlib import Path

import pytest

from measuretwice.base.errors import UserError
from measuretwice.site.words import site_words
from measuretwice.site.words.subjects import SiteWords

RECORDS = {
    "sample-data/browsers-machine.json": site_words.both_machines,
    "sample-data/browser-stopwatch.json": site_words.browser_stopwatch,
    "sample-data/reliability.json": site_words.reliability,
    "docs/includes/checker-faults.json": site_words.checker_faults,
}


@pytest.mark.parametrize("name", RECORDS)
@pytest.mark.parametrize("content", ["", '{"variants": {"rat', "[]"])
def test_a_record_that_is_broken_is_named(tmp_path: Path, name: str, content: str) -> None:
    site = SiteWords(tmp_path, {}, instructor=False)
    assert RECORDS[name](site) is None
    record = tmp_path / name
    record.parent.mkdir(parents=True)
    record.write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=record.name):
        RECORDS[name](site)
