"""Pack the LALR tables of `varmat/stan/grammar.lark` into `varmat/stan/grammar.json`.

    python tests/stan/pack_grammar.py > varmat/stan/grammar.json

Lark builds the tables; `varmat/stan/lalr.py` describes the packed form and reads it. States are
numbered as a walk from the start finds them, because lark numbers them differently in each process.
"""

import json
import re
from collections import Counter
from pathlib import Path

import lark
from lark.grammar import Rule
from lark.lexer import TerminalDef

import varmat.stan

GRAMMAR = Path(varmat.stan.__file__).with_name("grammar.lark")


def packed():
    """Return the tables by name."""
    parser = lark.Lark(GRAMMAR.read_text(encoding="utf-8"), parser="lalr", start="program")
    # Lark's stand-alone parsers are written from the same data.
    data, memo = parser.memo_serialize([TerminalDef, Rule])
    table = data["parser"]["parser"]
    symbols = sorted({*table["tokens"].values()})
    rules = {reference["@"]: i for i, reference in enumerate(data["rules"])}
    (start,), (end,) = table["start_states"].values(), table["end_states"].values()
    shifts, reductions = {}, {}
    for state, row in table["states"].items():
        shifts[state], reductions[state] = {}, {}
        for token, (reduces, action) in row.items():
            symbol = symbols.index(table["tokens"][token])
            if reduces:
                reductions[state].setdefault(rules[action["@"]], []).append(symbol)
            else:
                shifts[state][symbol] = action
    # Lark looks for this state; here the end is a token like others.
    shifts[end][symbols.index("$END")] = end
    order = {start: 0}
    for state in (states := [start]):
        found = [to for _, to in sorted(shifts[state].items()) if to not in order]
        for to in dict.fromkeys(found):
            order[to] = len(order)
            states.append(to)
    rows = [sorted((symbol, order[to]) for symbol, to in shifts[state].items()) for state in states]
    counts = Counter(pair for row in rows for pair in row)
    usual = dict(sorted(counts, key=lambda pair: (counts[pair], -pair[1])))
    sets = {}

    def number(members):
        return sets.setdefault(tuple(sorted(members)), len(sets))

    packed_states = [
        (
            number(symbol for symbol, to in row if usual[symbol] == to),
            [pair for pair in row if usual[pair[0]] != pair[1]],
            [(rule, number(ahead)) for rule, ahead in sorted(reductions[state].items())],
        )
        for state, row in zip(states, rows, strict=True)
    ]
    return {
        "patterns": patterns(parser.terminals),
        "words": {t.pattern.value: t.name for t in parser.terminals if t.pattern.type == "str"},
        "symbols": symbols,
        "rules": [packed_rule(memo[each["@"]], symbols) for each in data["rules"]],
        "usual": [usual.get(symbol) for symbol in range(len(symbols))],
        "sets": list(sets),
        "states": packed_states,
    }


def patterns(terminals):
    """Return the regular expressions in the order in which lark tries them."""
    found = [each for each in terminals if each.pattern.type == "re"]
    found.sort(key=lambda t: (-t.priority, -t.pattern.max_width, -len(t.pattern.value), t.name))
    return {each.name: each.pattern.value for each in found}


def packed_rule(rule, symbols):
    """Pack a rule, with the parts of its node as in lark's trees."""
    name, alias, options = rule["origin"]["name"], rule["alias"], rule["options"]
    parts, position = [], 0
    for is_left_out in options["empty_indices"] or [False] * len(rule["expansion"]):
        if is_left_out:
            parts.append(None)
            continue
        symbol = rule["expansion"][position]
        if symbol["name"].startswith("_") and symbol["__type__"] == "NonTerminal":
            parts.append(~position)
        elif options["keep_all_tokens"] or not symbol.get("filter_out"):
            parts.append(position)
        position += 1
    node = alias or ("_" if name.startswith("_") else name)
    if options["expand1"] and not alias:
        (only,) = parts
        assert only >= 0, name
        node = ""
    return symbols.index(name), node, len(rule["expansion"]), parts


def text():
    """Return the text of the packed tables."""
    tables = []
    for name, table in packed().items():
        if isinstance(table, dict):
            lines = json.dumps(table, indent=0)
        else:  # no element has a comma inside its text
            lines = re.sub("(.{100,}?,)", r"\1\n", json.dumps(table, separators=(",", ":")))
        tables.append(f'"{name}": {lines}')
    return "{\n" + ",\n".join(tables) + "\n}\n"


if __name__ == "__main__":
    print(text(), end="")
