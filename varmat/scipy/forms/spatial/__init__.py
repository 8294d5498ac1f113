"""Forms of `scipy.spatial`."""

from __future__ import annotations
