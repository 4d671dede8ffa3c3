"""Write lab.toml's JSON Schema to the standard output, from the tables' models; `make schema` keeps it.

It holds what can be said of a table by itself. What one table refers to in another, and numbers in range of their
parameter, only ./lab knows. (json-schema.org, draft 2020-12; each lab.toml names the file in a `#:schema` line, as taplo
and its editors' extensions read it.)
"""

import json
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from measuretwice.lab.schema import LabFile


class TomlSchema(GenerateJsonSchema):
    """TOML has no null: what may be missing is left out. Names stand once, without a title."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        if schema.get("default", "") is None:
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        table = super().dict_schema(schema)
        if "patternProperties" in table:
            table["additionalProperties"] = False
        return table

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


schema = LabFile.model_json_schema(schema_generator=TomlSchema)
document = {"$schema": TomlSchema.schema_dialect, **schema, "title": "lab.toml"}
print(json.dumps(document, indent=2, ensure_ascii=False))
