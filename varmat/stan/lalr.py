"""Parse the language of Stan with stored LALR tables.

`grammar.json` holds the tables of `grammar.lark`, packed by `tests/stan/pack_grammar.py`, because
building them takes a hundred times as long as reading a program. It has:

* `patterns`: kinds of tokens with their regular expressions, in the order in which they are tried;
  `__IGNORE` tokens are skipped. `words`: tokens that have only one spelling.
* `symbols`: the names of the tokens and rules; the tables below refer to them by number.
* `rules`: the symbol that a rule makes, the node, the number of symbols that the rule replaces, and
  the parts of the node. A part is the position of a symbol; `null` for an optional symbol that is
  left out; or `~position` for a list, whose elements are the parts. The node `"_"` is the list of
  its parts, and the node `""` is its only part.
* `states`: the number of a set of symbols that lead to their `usual` states; pairs of another
  symbol and a state; pairs of a rule and the number of the set of symbols before which the rule is
  applied. The first state is the start.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["ParsingError", "parse", "spellings"]


class ParsingError(Exception):
    """Text that does not follow the grammar.

    Parameters
    ----------
    start : int
        The position of the text.
    text : str
        The token, which is empty at the end; or a character with which no token begins.
    expected : set of str
        The kinds of the tokens that may follow here; empty if no token begins with the character.
    """

    def __init__(self, start: int, text: str, expected: set[str]) -> None:
        super().__init__(start, text, expected)
        self.start, self.text, self.expected = start, text, expected


class _Token(NamedTuple):
    kind: str
    text: str
    start: int
    end: int


class _Rule(NamedTuple):
    symbol: str
    node: str
    length: int
    parts: list[int | None]


class _Tables(NamedTuple):
    pattern: re.Pattern[str]
    words: dict[str, str]
    rules: list[_Rule]
    actions: list[dict[str, int]]  # for each state: symbol -> the next state, or `~rule`


@cache
def _tables() -> _Tables:
    stored = json.loads(Path(__file__).with_name("grammar.json").read_text(encoding="utf-8"))
    symbols, words = stored["symbols"], stored["words"]
    longest = sorted(words, key=len, reverse=True)
    patterns = {**stored["patterns"], "WORD": "|".join(map(re.escape, longest))}
    pattern = "|".join(f"(?P<{kind}>{expression})" for kind, expression in patterns.items())
    sets = [[symbols[i] for i in members] for members in stored["sets"]]
    usual = dict(zip(symbols, stored["usual"], strict=True))
    actions = []
    for members, others, reductions in stored["states"]:
        row = {symbol: usual[symbol] for symbol in sets[members]}
        row.update((symbols[i], state) for i, state in others)
        for rule, ahead in reductions:
            row.update(dict.fromkeys(sets[ahead], ~rule))
        actions.append(row)
    rules = [_Rule(symbols[i], *remaining) for i, *remaining in stored["rules"]]
    return _Tables(re.compile(pattern), words, rules, actions)


def spellings() -> dict[str, str]:
    """Return the spelling of each kind of token that has only one."""
    return {kind: text for text, kind in _tables().words.items()}


def parse(text: str, make: Callable[[str, list[Any], int, int], Any]) -> Any:
    """Parse a text, then make the nodes of its tree.

    Parameters
    ----------
    text : str
        A program.
    make : callable
        Takes the name of a node, its parts, and where its text starts and ends; returns the node.
        Parts are nodes, texts of tokens, or None. The text of an empty node ends at 0. No node is
        made unless the whole text follows the grammar; a node is made after its parts.

    Raises
    ------
    ParsingError
        If the text does not follow the grammar.
    """
    values: list[tuple[Any, int, int]] = []
    for step in _derivation(text):
        if isinstance(step, _Token):
            values.append(step[1:])
            continue
        first = len(values) - step.length
        replaced = values[first:]
        del values[first:]
        parts: list[Any] = []
        for position in step.parts:
            if position is None:
                parts.append(None)
            elif position >= 0:
                parts.append(replaced[position][0])
            elif parts:
                parts += replaced[~position][0]
            else:  # A long list grows in place, because only this node has it.
                parts = replaced[~position][0]
        start = next((start for _, start, end in replaced if end), 0)
        end = next((end for *_, end in reversed(replaced) if end), 0)
        if step.node == "":
            values.append((parts[0], start, end))
        elif step.node == "_":
            values.append((parts, start, end))
        else:
            values.append((make(step.node, parts, start, end), start, end))
    return values[0][0]


def _derivation(text: str) -> list[_Token | _Rule]:
    """List the tokens, and each rule behind the symbols that it replaces."""
    states, steps = [0], list[_Token | _Rule]()
    for token in _tokens(text):
        if not _shift(states, token.kind, steps):
            kinds = filter(str.isupper, _tables().actions[states[-1]])
            expected = {kind for kind in kinds if _shift([*states], kind, [])}
            raise ParsingError(token.start, token.text, expected)
        steps.append(token)
    return steps


def _shift(states: list[int], kind: str, steps: list[_Token | _Rule]) -> bool:
    """Apply the rules that end before a token and enter the state after it, if there is one."""
    _, _, rules, actions = _tables()
    while (action := actions[states[-1]].get(kind)) is not None:
        if action >= 0:
            states.append(action)
            return True
        rule = rules[~action]
        del states[len(states) - rule.length :]
        states.append(actions[states[-1]][rule.symbol])
        if rule.node or rule.length > 1:  # The other rules change nothing.
            steps.append(rule)
    return False


def _tokens(text: str) -> Iterator[_Token]:
    pattern, words, *_ = _tables()
    start = 0
    while start < len(text):
        match = pattern.match(text, start)
        if not match:
            raise ParsingError(start, text[start], set())
        kind, result, end = str(match.lastgroup), match[0], match.end()
        if not kind.startswith("__IGNORE"):
            yield _Token(words.get(result, kind), result, start, end)
        start = end
    yield _Token("$END", "", start, start)
