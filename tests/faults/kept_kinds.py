"""The kinds of faults that judge the checks: whoever wrote them hadn't read the checks, nor the other way round."""

from __future__ import annotations

from faults import Kind

KEPT: tuple[Kind, ...] = ()
