"""What all tables of lab.toml share: nothing unknown is taken, and names have one form."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
NodeName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$")]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
