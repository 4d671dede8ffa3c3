#!/usr/bin/env python3
"""Are names nouns and verbs of the field, and do docstrings say what is returned?

    names.py [FOLDER ...]     exit 1 with a line for each; without folders, the package and the labs, if there are more than MOST

A variable, parameter, function or class isn't called by a word that stands for another (`each`, `it`, `told`): its reader
would have to look for that other. A docstring doesn't begin as a noun clause or a question ("What a run measured"): it says
what is returned or done. Those that are left are counted, and may only become fewer.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("src/measuretwice", "labs")
DIALECT = frozenset(
    "each one it those these them said told taken kept here made meant known found".split()
)
CLAUSE = re.compile(
    r"(What|Which|Who|Whose|Whom|How|Where|When|Whether|Why|As|Not|Nobody)\b|[^.]*\?( |$)"
)
# Words of the site's templates, whose docstrings its reference quotes; scripts that recorded runs' plans hold by digest.
LEFT_OUT = ("site/macros", "nodes")
MOST = {"names": 113, "docstrings": 84}


def dialect_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield each name that is bound and is a word of the dialect, with its line."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                pass
            case ast.MatchAs(name=name) | ast.MatchStar(name=name) | ast.ExceptHandler(name=name):
                pass
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                pass
            case _:
                continue
        if name in DIALECT:
            yield node.lineno, f"a name {name!r}: call it by what it holds"


def clauses(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield each function whose docstring begins as a noun clause or a question, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = (ast.get_docstring(node) or "").split("\n\n")[0].replace("\n", " ")
            if CLAUSE.match(first):
                yield node.lineno, f"{node.name}: its docstring doesn't say what is returned"


def main(folders: list[str]) -> int:
    problems: dict[str, list[str]] = {"names": [], "docstrings": []}
    for folder in map(Path, folders or [str(ROOT / folder) for folder in FOLDERS]):
        for path in sorted(folder.rglob("*.py")):
            if any(part in path.as_posix() for part in LEFT_OUT):
                continue
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for kind, find in (("names", dialect_names), ("docstrings", clauses)):
                problems[kind] += [f"{path}:{line}: {problem}" for line, problem in find(tree)]
    status = 0
    for kind, lines in problems.items():
        most = 0 if folders else MOST[kind]
        if len(lines) > most:
            print("\n".join(lines))
            status = 1
        print(f"{len(lines)} {kind} to fix, at most {most}")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
