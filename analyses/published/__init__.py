"""Reference numbers as data, each file with its source. Read only where a table is shown, never by what computes."""

import importlib.resources
import json
from typing import Any


def load(name: str) -> dict[str, Any]:
    """The published numbers in `NAME.json`, with their `source`."""
    return json.loads(importlib.resources.files(__name__).joinpath(f"{name}.json").read_text(encoding="utf-8"))
