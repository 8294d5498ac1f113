"""Steps as loops of native code."""

from __future__ import annotations
