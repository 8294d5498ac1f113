"""Lines of Python, broken where they are too long."""

from __future__ import annotations

_WIDTH = 96


def wrapped(line: str) -> list[str]:
    """A line, or its outermost brackets on several lines if it is too long."""
    if len(line) <= _WIDTH:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()))
    for start, character in enumerate(line):
        if character in "([":
            end, is_call = _closing(line, start), (line[:start] or " ")[-1].isidentifier()
            if is_call and character == "[":  # a comma would change an index
                continue
            if end >= len(line.rstrip(":,")) - 1 and end - start > 20:
                parts = _at_commas(line[start + 1 : end])
                comma = "," if is_call or len(parts) > 1 or character == "[" else ""
                inner = [f"{indent}    {part}{comma}" for part in parts]
                return [
                    line[: start + 1],
                    *(each for part in inner for each in wrapped(part)),
                    indent + line[end:],
                ]
    name, equals, value = line.partition(" = ")
    parts = _at_sums(value)
    if equals and len(parts) > 1 and name.strip().replace("_", "").isalnum():
        return [f"{name} = (", *(f"{indent}    {part}" for part in parts), f"{indent})"]
    return [line]


def _at_sums(text: str) -> list[str]:
    """The terms of a sum, each with its sign."""
    parts, start, i = [], 0, 0
    while i < len(text):
        if text[i] in "([{":
            i = _closing(text, i)
        elif text[i : i + 3] in (" + ", " - "):
            parts.append(text[start:i])
            start = i + 1
        i += 1
    return [*parts, text[start:]]


def _closing(text: str, start: int) -> int:
    depth, quote = 0, ""
    for i in range(start, len(text)):
        c = text[i]
        if quote:
            quote = "" if c == quote else quote
        elif c in "\"'":
            quote = c
        else:
            depth += (c in "([{") - (c in ")]}")
            if not depth:
                return i
    return len(text)


def _at_commas(text: str) -> list[str]:
    parts, start, i = [], 0, 0
    while i < len(text):
        if text[i] in "([{":
            i = _closing(text, i)
        elif text[i] == ",":
            parts.append(text[start:i].strip())
            start = i + 1
        i += 1
    return [*parts, text[start:].strip()]
