"""Whose runs and whose words: what tells copies from runs of two seeds, and who is the original."""

import random
from dataclasses import replace
from pathlib import Path

import pytest
from example_class import copy_run

from measuretwice.grading.evidence import (
    MIN_LIKENESS,
    Recorded,
    find_agreement,
    likeness,
    read_recorded,
    same_words,
    sketch,
    sketches,
)
from measuretwice.grading.integrity import (
    Claim,
    Remark,
    Rerun,
    advice,
    find_origins,
    remark_on_words,
)
from measuretwice.grading.reader import read_submission
from measuretwice.grading.submission import Agreement, Contents, SubmittedRun
from measuretwice.lab import load_lab
from measuretwice.runs.folder import raw_files
from measuretwice.runs.remeasure import read_run

ROOT = Path(__file__).parents[2]
MATHIS = load_lab(ROOT, "mathis")
NOTHING = Recorded()


def numbers(seed: int, count: int = 900) -> list[str]:
    draw = random.Random(seed)
    return [
        f"t={1700000000 + n}.{n:06d} acked:{draw.randrange(10**8, 10**9)}" for n in range(count)
    ]


def test_a_sketch_outlives_what_is_written_into_a_file() -> None:
    text = "\n".join(numbers(1))
    before = sketch(text.encode())
    assert before is not None
    shifted = sketch(text.replace("t=17", "t=18").encode())
    assert shifted == before
    lines = numbers(1)
    for at in random.Random(3).sample(range(900), 45):
        lines[at] = "acked:123456789"
    edited, other = (sketch("\n".join(text_lines).encode()) for text_lines in (lines, numbers(2)))
    assert edited is not None
    assert other is not None
    print(likeness(before, edited), likeness(before, other))
    assert likeness(before, edited) > MIN_LIKENESS
    assert likeness(before, other) == 0
    assert sketch("\n".join(numbers(1, 20)).encode()) is None


OTHERS = pytest.mark.nightly("the runs of two labs, compared in the same way")


@pytest.mark.parametrize(
    "lab_name",
    [
        *("mathis", "queues"),
        *(pytest.param(name, marks=OTHERS) for name in ("calibrate", "buffers", "variants")),
    ],
)
def test_recorded_runs_of_two_seeds_are_never_alike(lab_name: str) -> None:
    """Every pair of recorded runs with different kernel's seeds: none counts as alike, and hardly one comes near.

    A single flow that loses nothing (Vegas, alone) has a rate that chance moves little.
    """
    traces = read_recorded(ROOT, load_lab(ROOT, lab_name)).traces
    assert traces
    closest, pairs, near = (0.0, ""), 0, 0
    for n, trace in enumerate(traces):
        for other in traces[:n]:
            if trace.kernel_seed == other.kernel_seed:
                continue
            for file in trace.sketches.keys() & other.sketches.keys():
                pairs += 1
                share = likeness(trace.sketches[file], other.sketches[file])
                near += share >= MIN_LIKENESS / 2
                closest = max(closest, (share, f"{file} of {trace.name} and {other.name}"))
    print(lab_name, pairs, near, closest)
    assert closest[0] < MIN_LIKENESS
    assert near <= pairs / 200


def test_where_chance_has_no_part_nothing_is_known_by_its_numbers() -> None:
    calibrate = load_lab(ROOT, "calibrate")
    folder = ROOT / "sample-data/00-calibrate/readings"
    for trial, is_random in ((1, False), (2, False), (3, True), (7, True)):
        run = read_run(ROOT, folder / f"trial-{trial:02d}-seed1", "x")
        found = sketches(calibrate, run.plan.params, raw_files(folder / f"trial-{trial:02d}-seed1"))
        assert bool(found) == is_random, trial


@pytest.fixture
def ours(tmp_path: Path) -> SubmittedRun:
    recorded = next((ROOT / "sample-data/01-mathis/case-05-broken").glob("trial-*"))
    copy_run(recorded, tmp_path / "in", 5)
    return read_submission(ROOT, [tmp_path / "in"], tmp_path / "tree").runs[0]


def claim(
    ours: SubmittedRun, index: int, seed: int, consistent: bool, proven: bool = False
) -> Claim:
    run = replace(
        ours,
        kernel_seed=seed,
        seed=seed,
        agreement=Agreement(contradictions=() if consistent else ("of another seed",)),
    )
    return Claim(index, run, rerun=Rerun(True, "") if proven else None)


def test_who_is_the_original(ours: SubmittedRun) -> None:
    def found(*claims: Claim) -> list[tuple[bool, int]]:
        origins = find_origins(claims, NOTHING)
        return [
            (origin.is_original, len(origin.originals))
            for origin in (origins[claimed.key] for claimed in claims)
        ]

    # One folder agrees with itself, the other doesn't.
    assert found(claim(ours, 0, 1, True), claim(ours, 1, 2, False)) == [(True, 1), (False, 1)]
    # Both do: nobody knows; until one comes out the same when it is run again.
    assert found(claim(ours, 0, 1, True), claim(ours, 1, 2, True)) == [(False, 0)] * 2
    proven = claim(ours, 0, 1, True, proven=True)
    assert found(proven, claim(ours, 1, 2, True)) == [(True, 1), (False, 1)]
    assert found(claim(ours, 0, 1, False), claim(ours, 1, 2, False)) == [(False, 0)] * 2
    # The same seed: nothing to tell.
    assert find_origins([claim(ours, 0, 1, True), claim(ours, 1, 1, True)], NOTHING) == {}
    sixty = [claim(ours, n, n, n == 7) for n in range(60)]
    assert [is_original for is_original, _ in found(*sixty)] == [n == 7 for n in range(60)]


def test_a_folder_of_one_run_agrees_with_itself(tmp_path: Path) -> None:
    good = ROOT / "tests/data/report/trial-07-seed1-b402df08"
    assert find_agreement(read_run(ROOT, good, good.name), good).is_of_one_run


ANSWER = "The segments are smaller than I had set them, since the interface's MTU of 1500 bytes was never raised on the router."


@pytest.mark.parametrize(
    ("other", "found"),
    [
        (ANSWER, True),
        (ANSWER.upper().replace(" ", "\n"), True),
        (ANSWER.replace(",", " --").replace("1500", "576"), True),
        (f"{ANSWER} I think.", True),
        (ANSWER.replace("ff", "\ufb00"), True),
        ("The segments are smaller than I had set them.", False),
        (
            "I had set larger segments; on the router nobody raised the interface's MTU, so 1500 bytes were all there was.",
            False,
        ),
        (f"    {ANSWER}", False),
    ],
)
def test_the_same_words(other: str, found: bool) -> None:
    contents = [Contents(answers={"Why?": text}) for text in (ANSWER, other, "Something else.")]
    same = same_words(contents, "mathis", {"Why?": 4})
    assert same == ({(0, "question 4"): {1}, (1, "question 4"): {0}} if found else {})


def test_whose_words_they_are() -> None:
    name = ["Ada", "Grace", "Emmy"].__getitem__
    remark = remark_on_words("question 4", {0}, set(), name)
    assert (remark.run, remark.is_odd) == ("question 4", True)
    assert "the submission of Ada" in remark.says
    # Whose runs were copied wrote first, too.
    assert not remark_on_words("question 4", {1}, {1}, name).is_odd
    assert "the submission of Emmy," in remark_on_words("question 4", {1, 2}, {1}, name).says


def test_lines_of_a_tool_are_nobodys_words() -> None:
    line = "cwnd:10 bytes_sent:197 bytes_acked:198 segs_out:7 data_segs_out:3 send 23701299bps pacing_rate delivery_rate busy minrtt"
    answer = f"I looked at this line: {line} and the MSS is small."
    content = Contents(answers={"Why?": answer}, cited={"Why?": {line: "romeo/ss.txt"}})
    assert same_words([content, content], "mathis", {"Why?": 1}) == {}


def test_what_folders_cant_tell_is_one_line_of_advice() -> None:
    """A copy rewritten in every place agrees with itself, as the original does: only --again decides."""
    unsettled = [
        Remark("copy", f"run-{n}", "53 of 56 raw files", is_unsettled=True) for n in (1, 2)
    ]
    settled = Remark("copy", "run-3", "53 of 56 raw files the same as Ada's, whose seed 1 is right")
    assert advice([settled]) == []
    [line] = advice([*unsettled, settled])
    assert line.startswith("2 runs are claimed by two seeds")
    assert "--again all" in line
    assert "\n" not in line
