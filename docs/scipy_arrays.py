"""The tables of docs/scipy_functions_arrays.md: what is written for the functions of SciPy that
work on arrays.

``python docs/scipy_arrays.py`` writes them anew from the table of the library; a test holds the
page to it, and the table to SciPy."""

from __future__ import annotations

from pathlib import Path

from varmat.functions.scipy_names import TABLE, answer

PAGE = Path(__file__).parent / "scipy_functions_arrays.md"
START, END = "<!-- the tables -->\n", "<!-- their end -->\n"


def shown(text: str) -> str:
    """An answer as it stands in the table: what can be written is code."""
    if text.startswith(("vm.", "varmat.")) or (text.startswith("np.") and " " not in text):
        return f"`{text}`"
    return text.replace("*", "\\*").replace("|", "\\|")


def lines() -> str:
    """The tables as they stand in the page."""
    parts = []
    for module, rows in TABLE.items():
        if module == "scipy.special":  # is in a page of its own, with the ufuncs
            continue
        names = sorted((name for each in rows.values() for name in each.split()), key=str.lower)
        parts.append(f"\n## {module}\n\n| function | answer |\n|---|---|\n")
        parts += [f"| `{name}` | {shown(answer(module, name) or '')} |\n" for name in names]
    return "".join(parts) + "\n"


def main() -> None:
    """Write the tables anew."""
    before, rest = PAGE.read_text(encoding="utf-8").split(START)
    PAGE.write_text(before + START + lines() + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
