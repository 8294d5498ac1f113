"""From a recording to a program."""
