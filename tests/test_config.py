"""Settings: checked when set, cheap to read, put back by `patch`."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from graphlift import config


@pytest.fixture(autouse=True)
def _put_back() -> Iterator[None]:
    former = config.current
    yield
    config.set_all(former)


def test_reads_and_writes_are_plain_attributes() -> None:
    assert config.recompile_limit == 8
    assert config.suppress_errors is True
    config.recompile_limit = 4
    assert config.recompile_limit == 4
    assert config.current.recompile_limit == 4


def test_every_setting_is_documented_and_declared() -> None:
    names = {item.name for item in dataclasses.fields(config.Config)}
    assert len(names) <= 20
    assert names == set(config.__annotations__) - {"current"}
    assert all(getattr(config, name) == getattr(config.current, name) for name in names)
    with open(config.__file__, encoding="utf-8") as file:
        text = file.read()
    for name in names:
        declaration = text.index(f"    {name}: ")
        assert text[text.index("\n", declaration) :].lstrip().startswith('"""'), name


def test_unknown_name_is_refused() -> None:
    with pytest.raises(AttributeError, match=r"no setting 'recompile_limits'.*recompile_limit"):
        config.recompile_limits = 4  # type: ignore[attr-defined]
    assert not hasattr(config, "recompile_limits")
    with pytest.raises(AttributeError):
        del config.recompile_limit


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("recompile_limit", "4", TypeError),
        ("recompile_limit", True, TypeError),
        ("recompile_limit", 0, ValueError),
        ("suppress_errors", 1, TypeError),
        ("cache_keep", -1, ValueError),
        ("patch", None, AttributeError),
        ("current", None, AttributeError),
    ],
)
def test_wrong_values_are_refused(name: str, value: object, error: type[Exception]) -> None:
    former = config.current
    with pytest.raises(error):
        setattr(config, name, value)
    assert config.current is former


def test_patch_nests_and_puts_back_only_what_it_changed() -> None:
    with config.patch(recompile_limit=2, suppress_errors=False):
        assert (config.recompile_limit, config.suppress_errors) == (2, False)
        with config.patch(recompile_limit=3):
            assert config.recompile_limit == 3
            config.cache_keep = 9
        assert config.recompile_limit == 2
    assert (config.recompile_limit, config.suppress_errors, config.cache_keep) == (8, True, 9)


def test_patch_puts_back_after_an_error_and_changes_nothing_when_refused() -> None:
    with pytest.raises(KeyError), config.patch(recompile_limit=2):
        raise KeyError
    assert config.recompile_limit == 8
    with pytest.raises(AttributeError), config.patch(recompile_limit=2, no_such=1):
        pytest.fail("entered")
    assert config.recompile_limit == 8


def test_patch_decorates() -> None:
    @config.patch(recompile_limit=2)
    def inside() -> int:
        return config.recompile_limit

    assert [inside(), inside(), config.recompile_limit] == [2, 2, 8]


@pytest.mark.parametrize(
    ("text", "expected"), [("1", "True"), ("0", "False"), ("", "False"), (None, "False")]
)
def test_environment_disables(text: str | None, expected: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "GRAPHLIFT_DISABLE"}
    if text is not None:
        environment["GRAPHLIFT_DISABLE"] = text
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    program = "from graphlift import config; print(config.disable)"
    out = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == expected
