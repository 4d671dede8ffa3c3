"""What the checker says of recorded runs."""

from __future__ import annotations

from typing import Any

from measuretwice.checks import Finding, case_of, check_run, check_set, with_help
from measuretwice.site.words.blocks import Block, verbatim
from measuretwice.site.words.registry import word
from measuretwice.site.words.subjects import LabWords


class FindingWords(Block):
    """Findings: printed as the checker's words; its attributes are the first one's parts."""

    _findings: list[Finding]

    def __new__(cls, findings: list[Finding], command: str) -> FindingWords:
        lines = [
            line
            for finding in findings
            for line in (
                f"{finding.id} ({finding.severity})",
                f"  measured: {finding.measured}",
                f"  expected: {finding.expected}",
            )
        ]
        text = "\n".join(lines or ["no finding"])
        self = super().__new__(cls, verbatim(text, "text", title=command))
        self._findings = findings
        return self

    @property
    def found(self) -> bool:
        return bool(self._findings)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not self._findings:
            raise AttributeError(name)
        return getattr(self._findings[0], name)


@word('finding("mtu-broken")')
def finding(words: LabWords, name: str) -> FindingWords:
    """What the checker prints of these runs; `.found`, and `.why`, `.measured`, `.expected` are its
    parts."""
    lab, results = words.lab, words.results_of(name)
    findings = [
        finding
        for result in results
        for finding in check_run(lab, case_of(lab, result.params, result.measured))
    ]
    place = results[0].run_dir.relative_to(words.root / "sample-data")
    if len(results) > 1:
        of_set = check_set(lab, [result.member for result in results])
        findings = [with_help(lab, each.finding, None) for each in of_set] + findings
        place = place.parent
    unique = list({finding.id: finding for finding in findings}.values())
    return FindingWords(unique, f"./lab check sample-data/{place.as_posix()}")
