"""What a page says of the kit's own measurements: each is a fact, and records that can't be read end in one line."""

from pathlib import Path

import pytest
from all_cases import ROOT

from measuretwice.base.errors import UserError
from measuretwice.site.kit_facts import RECORDS, kit_facts


@pytest.mark.parametrize("name", RECORDS)
@pytest.mark.parametrize("content", ["", '{"variants": {"rat', "[]", "{}"])
def test_a_record_that_is_broken_is_named(tmp_path: Path, name: str, content: str) -> None:
    assert list(kit_facts(tmp_path)) == []
    record = tmp_path / name
    record.parent.mkdir(parents=True)
    record.write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=record.name):
        kit_facts(tmp_path)


def test_every_kind_of_fault_has_a_row_and_its_runs_add_up() -> None:
    f = kit_facts(ROOT)
    groups = (f.known_faults, f.kept_faults, f.faults_kept_later)
    for group in groups:
        for _, runs, right, blamed, silent, _ in group.rows:
            assert runs.value == right.value + blamed.value + silent.value
    reviewed = f.faults.rows[-1][1].value
    of_kinds = sum(row[1].value for group in groups for row in group.rows)
    assert f.fault_runs.value == of_kinds + reviewed + f.honest_runs.value
