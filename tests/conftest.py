"""What several test files need."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("skipgrad", deadline=None)  # a busy machine is no failure
settings.load_profile("skipgrad")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of benchmark texts, which is no part of the repository."""
    folder = Path(os.environ.get("SKIPGRAD_DATA") or Path(__file__).parents[2] / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"no benchmark texts in {folder}; say where they are with SKIPGRAD_DATA")
    return folder


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the user's cache."""
    monkeypatch.setenv("SKIPGRAD_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
