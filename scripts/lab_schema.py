"""Write lab.toml's JSON Schema anew: run it as `make schema`, after a change of the tables."""

from pathlib import Path

from measuretwice.lab.schema.file import SCHEMA_FILE, json_schema_text

(Path(__file__).parents[1] / SCHEMA_FILE).write_text(json_schema_text(), encoding="utf-8")
