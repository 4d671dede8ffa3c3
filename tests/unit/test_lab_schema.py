"""lab.toml's JSON Schema: what editors hold a lab against is what ./lab reads."""

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from command_line import run_program

from measuretwice.base.errors import UserError
from measuretwice.lab import find_labs, read_lab
from measuretwice.lab.schema import SCHEMA_FILE

ROOT = Path(__file__).parents[2]
LABS = find_labs(ROOT)


@pytest.fixture(scope="module")
def validator() -> jsonschema.protocols.Validator:
    schema = json.loads((ROOT / SCHEMA_FILE).read_text(encoding="utf-8"))
    kind = jsonschema.validators.validator_for(schema, default=None)
    kind.check_schema(schema)
    return kind(schema)


def test_file_is_what_the_tables_make() -> None:
    done = run_program(sys.executable, "-P", ROOT / "scripts/lab_schema.py")
    assert done.returncode == 0, done.stderr
    committed = (ROOT / SCHEMA_FILE).read_text(encoding="utf-8")
    assert committed == done.stdout, "the tables changed: run make schema"


@pytest.mark.parametrize("name", LABS)
def test_every_lab_fits_and_names_it(name: str, validator: jsonschema.protocols.Validator) -> None:
    text = (LABS[name] / "lab.toml").read_text(encoding="utf-8")
    directive, _, place = text.partition("\n")[0].partition(" ")
    assert directive == "#:schema"
    assert (LABS[name] / place).resolve() == (ROOT / SCHEMA_FILE).resolve()
    validator.validate(tomllib.loads(text))


@pytest.mark.parametrize(
    ("name", "old", "new", "place"),
    [
        ("calibrate", "minutes = 55", 'minutes = "45"', "lab.minutes"),
        ("calibrate", "minutes = 55", "minutes = 0", "lab.minutes"),
        ("calibrate", "minutes = 55", "", "lab"),
        ("calibrate", "minutes = 55", "minutes = 55\nteacher = 1", "lab"),
        ("calibrate", "format_version = 1", "", ""),
        ("calibrate", "format_version = 1", "format_version = 2", "format_version"),
        ("calibrate", "rtt_ms = { default", "RTT = { default", "parameters"),
        ("calibrate", 'help = "round-trip', 'helps = "round-trip', "parameters.rtt_ms"),
        ("calibrate", 'keep = "digests"', 'keep = "all"', "recordings.1.keep"),
        ("mathis", 'file = "trials.csv"', "file = 1", "trials"),
        ("mathis", "tries = 2", "tries = 0", "pitfalls.12.broken.again.tries"),
        ("variants", 'kind = "boxes"', 'kind = "boxen"', "figures.7"),
    ],
)
def test_what_it_refuses_the_kit_refuses(
    name: str,
    old: str,
    new: str,
    place: str,
    tmp_path: Path,
    validator: jsonschema.protocols.Validator,
) -> None:
    text = (LABS[name] / "lab.toml").read_text(encoding="utf-8")
    assert old in text
    text = text.replace(old, new, 1)
    document: dict[str, Any] = tomllib.loads(text)
    places = {".".join(map(str, error.absolute_path)) for error in validator.iter_errors(document)}
    assert places == {place}
    (tmp_path / "lab.toml").write_text(text)
    with pytest.raises(UserError):
        read_lab(tmp_path)


def test_unknown_format_is_refused_before_anything_else(tmp_path: Path) -> None:
    """Whatever a later format has, it is not called a wrong key."""
    folder = tmp_path / "labs" / "09-later"
    folder.mkdir(parents=True)
    for text, found in (("format_version = 2\n[later]\n", "got 2"), ("[lab]\n", "no such key")):
        (folder / "lab.toml").write_text(text)
        with pytest.raises(UserError) as caught:
            read_lab(folder)
        assert str(caught.value) == (
            "labs/09-later/lab.toml: format_version: expected 1, which is what this kit reads; "
            f"{found}"
        )
