"""What the tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with evaluation files and texts; the test is skipped where it is not there."""
    folder = Path(os.environ.get("SKIPGRAD_DATA", Path(__file__).resolve().parents[1] / "../shared/data"))
    if not folder.is_dir():
        pytest.skip(f"needs the shared data: set SKIPGRAD_DATA, {folder} is not there")
    return folder
