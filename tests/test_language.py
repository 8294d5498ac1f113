"""The English of docstrings and comments: how often turns occur that are never plain. The numbers
may only fall; lower them when you have removed some.
"""

import ast
import inspect
import io
import re
import tokenize
from pathlib import Path

import pytest

import varmat as vm

PACKAGE = Path(__file__).parents[1] / "varmat"
# How often a turn may occur.
MOST = {
    r"\bOf (the|a|an|which|all|one|two|each)\b[^.]*\.$": 0, r"\bso (many|much) (?!that\b|as\b)": 0,
    r"\b(any|no|some)body\b": 0, r"\b(anew|besides)\b": 0, r"\bbeside\b": 0,
    r"\bof (which|whom)\b": 0, r"\bone after the other\b": 0, r"\bof (its|their) own\b": 0,
    r"\bas (it is|they are)\b(?! (written|now))": 5, r"\bstands? (on|in|at|by|before|behind)\b": 0,
    r"\b(is|are|as|by|with|to|from|than|and|or|of|has|have|,) (that|those) of\b": 0,
    r"(?<![Tt]here )(?<!may )\b(is|are|was|were|be) no (?!longer|more|less|larger|smaller)": 0,
    r"(?<![Tt]here )\b(is|are|was|were|be) none\b": 0,
    r", for (it|they|there|this|these|(?!what)(the |an? )?[a-z]+) (is|are|has|have|can|may)\b": 0,
}  # fmt: skip
# Words that begin a noun phrase or a clause, where a function says what it does.
NO_VERB = re.compile(
    r"(The|A|An|What|Whether|Where|How|Which|Who|All|Those|One|Each|Some|Two|Both|If|This|So|Of|As|"
    r"In|For|From)\b"
)
# How many docstrings of functions of a room may begin so. Those of densities are notes, of which
# the docstrings that users see are made.
OPENINGS = {"densities": 112}


def prose(path):
    """The lines of comments and docstrings of a file, without examples."""
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.type == tokenize.COMMENT:
            yield token.string
        elif token.type == tokenize.STRING and token.string.lstrip("rbfu").startswith('"""'):
            for line in token.string.splitlines():
                if not line.strip().startswith((">>>", "...")):
                    yield line


LINES = [line for path in sorted(PACKAGE.rglob("*.py")) for line in prose(path)]


@pytest.mark.parametrize("turn", MOST)
def test_turns_that_are_never_plain(turn):
    found = [line.strip() for line in LINES if re.search(turn, line)]
    assert len(found) <= MOST[turn], "\n".join(found)


def test_functions_say_what_they_do():
    found = dict.fromkeys(OPENINGS, 0)
    for path in PACKAGE.rglob("*.py"):
        room = path.relative_to(PACKAGE).parts[0]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef) or any(
                ast.unparse(each).endswith("property") for each in node.decorator_list
            ):
                continue
            if NO_VERB.match(ast.get_docstring(node) or ""):
                found[room] = found.get(room, 0) + 1
    more = {room: count for room, count in found.items() if count > OPENINGS.get(room, 0)}
    assert not more


def test_public_functions_say_what_they_do():
    docs = {name: inspect.getdoc(getattr(vm, name)) or "" for name in vm.__all__}
    assert not [name for name, text in docs.items() if NO_VERB.match(text) and name[0].islower()]
