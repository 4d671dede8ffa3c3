"""[parameters] and [[trials]]: what a lab can set, in which units, and what its trials set; and what all tables share."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Collection, Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
NodeName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$")]


# Every numeric parameter's name ends in one of these, so that no number stands without a unit.
UNITS = {
    "ms": "milliseconds",
    "us": "microseconds",
    "s": "seconds",
    "bytes": "bytes",
    "packets": "packets",
    "segments": "segments",
    "ratio": "a ratio between 0 and 1",
    "percent": "percent",
    "mbit": "Mbit/s (10^6 bit/s)",
    "count": "a count",
    "flows": "flows",
}
# Names that are their own unit.
COUNTED = frozenset({"flows"})
Value = float | int | str
# A parameter is a variable of its name in capitals wherever node scripts run. What a shell, a linker or an
# interpreter reads of its variables must be none; nor what these scripts have from elsewhere.
RESERVED = frozenset(
    "bash_env bashopts cdpath columns comp_wordbreaks editor env environ euid exinit fcedit fignore funcnest glob_ignore "
    "globignore histfile histcmd home hostaliases hostfile hostname hostres_options ifs ignoreeof inputrc lab lang language "
    "lines localdomain localpath locpath logname machtype mail mailcheck mailpath malloc_trace namespace nis_path nlspath node "
    "oldpwd optarg opterr optind ostype out pager path path_locale pipestatus posixly_correct ppid prompt_command "
    "prompt_dirtrim ps0 ps1 ps2 ps3 ps4 pwd random ready_file reply res_options root seconds shell shellopts shlvl "
    "ss_sampler srandom term termcap termpath terminfo terminfo_dirs timeformat tmout tmpdir tmp temp tz tzdir uid user "
    "visual".split()
)
RESERVED_PREFIXES = (
    "bash_", "comp_", "curl_", "dyld_", "gcc_", "gconv_", "getconf_", "git_", "glibc_", "hist", "kit_", "lc_", "ld_",
    "malloc_", "measuretwice_", "mt_", "node_", "npm_", "perl", "python", "resolv_", "ssh_", "ssl_", "sudo_", "xdg_",
)  # fmt: skip
# What a word may be made of, whatever pattern a lab gives: nothing that a shell, awk or tc takes for its own.
PLAIN_WORD = re.compile(r"[A-Za-z0-9_./:+@%-]{1,64}")
# So many names are offered for one that isn't known.
MOST_OFFERED = 5
# Words that stand in too many meanings to ask for one of them.
EMPTY = frozenset(
    "the and for with what how who its all each one first may that between before is are was set unless "
    "number test time data link path tcp iperf3 nothing else idle together".split()
)


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


# No setting of any network is larger, in any unit.
_MOST_ELSEWHERE = 1e15


class Parameter(Strict):
    """One setting of a lab: a number with a unit in its name, or one of a few words.

    Without a `default` it is not set, and the node scripts derive it from the others. Some mistakes
    are staged by setting it on its own (a loss in per cent that isn't the ratio that was meant).
    `sets` gives, for each choice, the values that other parameters have with it, unless a trial, a stage or
    --set says otherwise.
    An `unlisted` one is set like any other, but lists leave it out until its case is solved, or somebody
    has set it. Settings that stage a mistake, or say how to judge, are unlisted.
    """

    default: Value | None = None
    help: str
    min: float | int | None = None
    max: float | int | None = None
    integer: bool = False
    choices: list[str] | None = None
    pattern: str | None = None
    unlisted: bool = False
    sets: dict[str, dict[Name, Value]] = {}

    @property
    def numeric(self) -> bool:
        return self.choices is None and self.pattern is None

    def read(self, name: str, given: Value, *, elsewhere: bool = False) -> Value:
        """Return `given` (text or number) as a value of this parameter, or raise ValueError. What was set `elsewhere`, and is only
        compared with what was measured, may be outside of what the lab can set: but not below 0, nor a share above 1."""
        if self.choices is not None:
            if given not in self.choices:
                raise ValueError(
                    f"{name}: expected one of {', '.join(self.choices)}, got {given!r}"
                )
            return str(given)
        if self.pattern is not None:
            if (
                not isinstance(given, str)
                or not PLAIN_WORD.fullmatch(given)
                or not re.fullmatch(self.pattern, given)
            ):
                raise ValueError(f"{name}: expected a name like {self.default!r}, got {given!r}")
            return given
        unit = unit_of(name)
        has_article = unit.startswith("a ")
        try:
            number = float(given)
        except (ValueError, OverflowError):
            expected = unit if has_article else f"a number in {unit}"
            raise ValueError(f"{name}: expected {expected}, got {given!r}") from None
        low, high = self.min, self.max
        if (
            elsewhere
            and 0 < number <= _MOST_ELSEWHERE
            and not name.endswith(("_ratio", "_percent"))
        ):
            low = high = number
        if (
            not math.isfinite(number)
            or (low is not None and number < low)
            or (high is not None and number > high)
        ):
            raise ValueError(f"{name}: expected {_range(low, high)} ({unit}), got {given}")
        if number.is_integer():
            return int(number)
        if self.integer:
            expected = "a whole number" if has_article else f"a whole number of {unit}"
            raise ValueError(f"{name}: expected {expected}, got {given}")
        return number


def _range(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f"{low:g} to {high:g}"
    return f"at least {low:g}" if low is not None else f"at most {high:g}"


def is_reserved(name: str) -> bool:
    """Return whether a parameter of this name would be a variable that a shell or another program reads for
    itself."""
    return name in RESERVED or name.startswith(RESERVED_PREFIXES)


def refers(value: Value) -> bool:
    """Return whether a stage's value names another parameter, as in `loss_percent = "=loss_ratio"`."""
    return isinstance(value, str) and value.startswith("=")


def unit_of(name: str) -> str:
    """Return the unit in a parameter's name, in words; ValueError where it has none."""
    unit = UNITS.get(name.rsplit("_", 1)[-1])
    if unit is None or ("_" not in name and name not in COUNTED):
        raise ValueError(
            f"{name}: a number's name ends in its unit, one of _{', _'.join(UNITS)} (as in rtt_ms)"
        )
    return unit


class TrialTable(Strict):
    """All trials in a CSV `file`, a line each."""

    file: str


class InlineTrial(Strict):
    """One trial: its number, its title, and the parameters that it sets."""

    trial: int = Field(gt=0)
    title: str
    set: dict[str, Value] = {}


def suggestions(
    parameters: Mapping[str, Parameter], asked: str, due: Collection[str] = ()
) -> list[str]:
    """Return names of parameters near one that isn't known: in letters, with one of its words, or by their help.

    Of those that are unlisted only the ones that are `due`: the others tell a cause that is still to be found.
    """
    offered = {
        name: parameter
        for name, parameter in parameters.items()
        if not parameter.unlisted or name in due
    }
    words = {
        word
        for word in re.findall(r"[a-z0-9]+", asked.casefold())
        if len(word) > 2 and word not in EMPTY and word not in UNITS
    }
    alike = difflib.get_close_matches(asked.casefold(), offered, n=2, cutoff=0.75)
    named = [
        name
        for name in offered
        if any(part.startswith(word) for word in words for part in name.split("_"))
    ]
    by_help = [
        name
        for name, parameter in offered.items()
        if words & {*re.findall(r"[a-z0-9]+", parameter.help.casefold())}
    ]
    return list(dict.fromkeys([*alike, *named] or by_help))[:MOST_OFFERED]
