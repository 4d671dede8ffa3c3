"""benchmarks/verdicts.py: what Linux's selftests print, read; and two kernels' verdicts, compared."""

import tomllib
from pathlib import Path

import pytest
from benchmark_modules import BENCHMARKS, load

ROOT = Path(__file__).parents[2]


verdicts = load("verdicts")

TDC = """\
 -- ns/SubPlugin.__init__
Test 6430: Create TBF with default setting
Test 0518: Create TBF with mtu setting

All test results: 

1..3
ok 1 6430 - Create TBF with default setting
not ok 2 0518 - Create TBF with mtu setting
\tCould not match regex pattern.
ok 3 320a - Create TBF with peakrate setting # skipped - needs a newer tc
"""  # noqa: W291
HARNESS = """\
TAP version 13
1..2
# Starting 2 tests from 1 test cases.
#  RUN           msg_oob.non_oob ...
#            OK  msg_oob.non_oob
ok 1 msg_oob.non_oob
#  RUN           msg_oob.oob ...
#      SKIP      no such thing
ok 2 msg_oob.oob # SKIP no such thing
# PASSED: 2 / 2 tests passed.
# Totals: pass:1 fail:0 xfail:0 xpass:0 skip:1 error:0
"""
BRACKETS = """\
TEST: ping                                                          [ OK ]
TEST: red: Offered more than the queue holds                        [FAIL]
\tUnexpected number of packets
TEST: ECN nodrop                                                    [SKIP]
\tecn_nodrop isn't there
    TEST: Fib4 rule lookup                                          [ OK ]
    TEST: Fib4 rule lookup                                          [ OK ]
"""
COLUMNS = """\
default - gro flag                             ok
        - aggregation                          fail - expected 10 packets, found 9
PASS: policy routing
\x1b[0;32mPASS\x1b[0m: neighbour in 12.5 ms
SKIP: fou
"""


def test_tdcs_tests_are_read_one_by_one() -> None:
    outcome = verdicts.read_outcome(TDC, 0)
    assert list(outcome.checks.values()) == ["pass", "fail", "skip"]
    assert "6430 - Create TBF with default setting" in outcome.checks
    # tdc ends with 0 all the same.
    assert outcome.verdict == "fail"


def test_what_a_program_in_c_skips_is_skipped() -> None:
    outcome = verdicts.read_outcome(HARNESS, 0)
    assert outcome.checks == {"msg_oob.non_oob": "pass", "msg_oob.oob": "skip"}
    assert outcome.verdict == "pass"


def test_shell_tests_verdicts_stand_in_brackets() -> None:
    outcome = verdicts.read_outcome(BRACKETS, 1)
    assert list(outcome.checks.values()) == ["pass", "fail", "skip", "pass", "pass"]
    assert outcome.checks["Fib4 rule lookup (2)"] == "pass"
    assert outcome.verdict == "fail"


def test_columns_and_colons_are_read_and_times_are_no_part_of_a_name() -> None:
    outcome = verdicts.read_outcome(COLUMNS, 1)
    assert outcome.checks == {
        "default - gro flag": "pass",
        "- aggregation": "fail",
        "policy routing": "pass",
        "neighbour in _": "pass",
        "fou": "skip",
    }


@pytest.mark.parametrize(
    ("text", "code", "verdict"),
    [
        ("", 0, "pass"),
        ("", 1, "fail"),
        ("SKIP: Could not run test without jq", 4, "skip"),
        ("TAP version 13\n1..0 # SKIP not root\n", 0, "skip"),
        ("", 124, "timeout"),
        ("ok 1 as far as it came\n", 137, "timeout"),
        ("", None, "timeout"),
    ],
)
def test_a_programs_own_end_is_its_verdict(text: str, code: int | None, verdict: str) -> None:
    assert verdicts.read_outcome(text, code).verdict == verdict


def test_why_it_was_skipped_is_kept() -> None:
    skipped = verdicts.read_outcome("# hello\nSKIP: Could not run test without jq\n", 4)
    assert skipped.why == "SKIP: Could not run test without jq"


def test_a_skip_in_both_is_counted_apart() -> None:
    tried = [verdicts.read_outcome(HARNESS, 0)]
    assert verdicts.compare(tried, tried).same == {"pass": 1, "skip": 1}


def test_checks_differ_where_no_verdict_was_had_on_both_and_vary_where_one_kernel_gave_two() -> (
    None
):
    def tried(*words: str) -> object:
        return verdicts.read_outcome(
            "".join(f"{w} {n} {name}\n" for n, (w, name) in enumerate(zip(words, "abc", strict=False), 1)), 0
        )  # fmt: skip

    stock = [tried("ok", "ok", "ok"), tried("ok", "not ok", "ok")]
    patched = [tried("not ok", "ok"), tried("not ok", "ok")]
    agreement = verdicts.compare(stock, patched)
    assert agreement.differ == {"a": ["pass", "fail"], "c": ["pass", "absent"]}
    assert agreement.vary == ["b"]
    assert verdicts.total({"x": agreement}) == {"differ": 2, "vary": 1}


def test_a_program_without_checks_and_one_that_ended_in_time_count_by_themselves() -> None:
    assert verdicts.compare([verdicts.read_outcome("", 0)], [verdicts.read_outcome("", 1)]).differ == {"": ["pass", "fail"]}  # fmt: skip
    late = verdicts.read_outcome("ok 1 a\n", 124)
    assert verdicts.compare([late], [late]).same == {"pass": 1, "timeout": 1}


def test_the_list_names_each_test_once() -> None:
    groups = tomllib.loads((BENCHMARKS / "selftests.toml").read_text(encoding="utf-8"))["group"]
    named = [(group["folder"], name) for group in groups for name in group["tests"].split()]
    assert len(named) == len(set(named)) > 150
    for group in groups:
        for some in ("quick", "real_time"):
            assert set(group.get(some, "").split()) <= set(group["tests"].split())


def test_a_check_that_a_time_limit_cut_off_does_not_differ() -> None:
    whole = verdicts.Outcome("pass", {"a": "pass", "b": "pass"})
    cut = verdicts.Outcome("timeout", {"a": "pass"})
    agreement = verdicts.compare([whole], [cut])
    assert agreement.same == {"pass": 1}
    assert agreement.vary == ["b"]
    # That it doesn't end in time is a verdict of its own.
    assert agreement.differ == {"": ["pass", "timeout"]}
    assert verdicts.compare([whole], [cut, whole]).vary == [""]


def test_a_random_name_of_a_namespace_is_no_name() -> None:
    texts = (
        "TEST: testns-YfmkdX: add vrf vrf100 [ OK ]",
        "TEST: testns-JyU11r: add vrf vrf100 [ OK ]",
    )
    one, other = (verdicts.read_outcome(text, 0).checks for text in texts)
    assert list(one) == list(other)
