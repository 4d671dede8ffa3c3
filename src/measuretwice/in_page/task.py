"""What one press of a page's button means, until all of it is measured."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from measuretwice.cli.cases import CaseRun
from measuretwice.execute.batch import Batch
from measuretwice.execute.job import Job
from measuretwice.lab import Again, Lab


@dataclass
class Task:
    """The lab, the case where there is one, and its trials' jobs by their folders' names."""

    lab: Lab
    batch: Batch
    settings: dict[str, Any]
    case: CaseRun | None
    again: Again | None
    # What was predicted: noted once something was measured, not before.
    predicted: str | None = None
    jobs: dict[str, Job] = field(default_factory=dict)
