"""A lab's facts: lab.toml, its trials, and the plan of a run. The tables of lab.toml are in lab.schema."""

from measuretwice.lab.first_try import (
    TryPlan,
    after_cases,
    first_try_cases,
    first_try_of,
    movers_of_first_try,
    plan_try,
    recorded_steps,
    step_cases,
    supporting_range,
)
from measuretwice.lab.lab import Lab, Trial, select_trials
from measuretwice.lab.load import find_labs, load_lab, published_labs, read_lab
from measuretwice.lab.own_copy import (
    OwnCopy,
    OwnScripts,
    copy_folder,
    make_copy,
    put_aside,
    read_copy,
)
from measuretwice.lab.plan import (
    UNSET,
    CheckedParams,
    KernelFacts,
    Plan,
    StageName,
    Toolchain,
    complaints,
    digest_scripts,
    kernel_seed,
    make_plan,
    read_plan,
    trial_params,
)
from measuretwice.lab.schema.parameters import Value
from measuretwice.lab.spoilers import read_questions

__all__ = [
    "UNSET",
    "CheckedParams",
    "KernelFacts",
    "Lab",
    "OwnCopy",
    "OwnScripts",
    "Plan",
    "StageName",
    "Toolchain",
    "Trial",
    "TryPlan",
    "Value",
    "after_cases",
    "complaints",
    "copy_folder",
    "digest_scripts",
    "find_labs",
    "first_try_cases",
    "first_try_of",
    "kernel_seed",
    "load_lab",
    "make_copy",
    "make_plan",
    "movers_of_first_try",
    "plan_try",
    "published_labs",
    "put_aside",
    "read_copy",
    "read_lab",
    "read_plan",
    "read_questions",
    "recorded_steps",
    "select_trials",
    "step_cases",
    "supporting_range",
    "trial_params",
]
