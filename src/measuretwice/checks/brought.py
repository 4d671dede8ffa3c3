"""The checks of files that a person brings: are they of one run, and of such a test as the lab's?"""

from __future__ import annotations

from measuretwice.checks.case import Case
from measuretwice.checks.finding import Finding
from measuretwice.checks.registry import Help, check


@check(
    Help(
        "unfit",
        "Whether each test among files that were brought is one of TCP, from sender to receiver, run to its end.",
        hints=(
            "One of these files isn't a test such as this lab's. Which file is named?",
            "Look at its first and last lines: protocol, direction, and whether it ran to its end.",
            "Measure that one again, as the lab's script does: TCP, without -R and -u, until iperf3 says that it is done.",
        ),
    ),
    needs=("unfit",),
)
def unfit(case: Case) -> Finding | None:
    problem = case.word("unfit")
    if problem is None:
        return None
    return Finding(
        "unfit",
        "error",
        problem,
        "a test of TCP from the sender to the receiver, run to its end; and a ping that came back",
        "Nothing can be concluded from such a file, so it isn't used. What the others say still holds.",
    )


@check(Help("two-runs"), needs=("several_runs", "foreign_logs"))
def of_one_run(case: Case) -> Finding | None:
    """The clients' times, and ss's connections against those that iperf3 names."""
    found = case.word("several_runs") or case.word("foreign_logs")
    if found is None:
        return None
    return Finding(
        "two-runs",
        "error",
        found,
        "the files of one run",
        "What is measured in one run says nothing about another. The last run is checked, with the files "
        "that are known to be its own.",
    )


@check(Help("configuration"), needs=("misplaced",))
def misplaced(case: Case) -> Finding | None:
    """The bottleneck's qdisc, against the interface by which most bytes left."""
    found = case.word("misplaced")
    if found is None:
        return None
    return Finding(
        "configuration",
        "error",
        found,
        "the qdisc on the interface that the data leaves by",
        "What that qdisc counts isn't what happened to the data.",
        off="the qdisc that the data is meant to pass is elsewhere",
    )


@check(Help("wrong-algorithm"), needs=("iperf3_algorithms",))
def algorithms_by_iperf3(case: Case) -> Finding | None:
    """The congestion control that iperf3 names, against those that were meant."""
    found = set((case.word("iperf3_algorithms") or "").split())
    if not case.algorithms or found <= case.algorithms:
        return None
    return Finding(
        "wrong-algorithm",
        "error",
        f"flows of {', '.join(sorted(found - case.algorithms))} (iperf3)",
        ", ".join(sorted(case.algorithms)),
        "What is measured is another algorithm's doing: the setting did not reach the socket.",
        off="a flow isn't of the kind that was asked for",
    )
