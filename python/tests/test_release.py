"""All files name one version, and the release recipe writes the next one."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT

FILES = ["CHANGELOG.md", "CITATION.cff", "Cargo.lock", "Cargo.toml", "pyproject.toml"]


def release(*words: str, root: Path = ROOT) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(ROOT / ".ci" / "release"), *words, "--root", str(root)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with the files that a release changes, committed."""
    for name in FILES:
        shutil.copy(ROOT / name, tmp_path / name)
    changelog = tmp_path / "CHANGELOG.md"
    text = changelog.read_text()
    changelog.write_text(text.replace("## Unreleased\n", "## Unreleased\n\n### Added\n\n- A test.\n", 1))
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return tmp_path


def git(folder: Path, *words: str) -> str:
    as_somebody = ["-c", "user.name=test", "-c", "user.email=test@example.invalid", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", *as_somebody, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


def commit(folder: Path) -> None:
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "a change")


def test_all_files_name_one_version() -> None:
    done = release("check")
    assert done.returncode == 0, done.stderr


def test_a_release_is_cut_once(checkout: Path) -> None:
    assert release("ready", "9.8.7", root=checkout).returncode == 2
    done = release("cut", "9.8.7", "--date", "2031-02-03", root=checkout)
    assert done.returncode == 0, done.stderr
    assert (
        "## Unreleased\n\n## 9.8.7 - 2031-02-03\n\n### Added\n\n- A test.\n" in (checkout / "CHANGELOG.md").read_text()
    )
    assert "version: 9.8.7\ndate-released: 2031-02-03\n" in (checkout / "CITATION.cff").read_text()
    assert release("check", root=checkout).stdout == "all files name 9.8.7\n"
    again = release("cut", "9.8.7", root=checkout)
    assert (again.returncode, "9.8.7 is released already" in again.stderr) == (2, True)
    empty = release("cut", "9.8.8", root=checkout)
    assert (empty.returncode, "`## Unreleased` is empty" in empty.stderr) == (2, True)

    dirty = release("ready", "9.8.7", root=checkout)
    assert (dirty.returncode, "not committed" in dirty.stderr) == (2, True)
    commit(checkout)
    assert release("ready", "9.8.7", root=checkout).stdout == "ready to tag v9.8.7\n"
    git(checkout, "tag", "v9.8.7")
    assert "exists already" in release("ready", "9.8.7", root=checkout).stderr


def test_a_release_is_prepared_in_one_step_and_not_twice(checkout: Path) -> None:
    for name, value in [("user.name", "test"), ("user.email", "test@example.invalid"), ("commit.gpgsign", "false")]:
        git(checkout, "config", name, value)
    assert release("prepare", "9.8.7", root=checkout).stdout == "cut 9.8.7 and committed it\n"
    assert git(checkout, "log", "--format=%s", "-1") == "release 9.8.7\n"
    assert release("prepare", "9.8.7", root=checkout).stdout == "all files name 9.8.7 already\n"
    assert release("ready", "9.8.7", root=checkout).stdout == "ready to tag v9.8.7\n"
    # What came later is not in the section of the version.
    changelog = checkout / "CHANGELOG.md"
    changelog.write_text(changelog.read_text().replace("## Unreleased\n", "## Unreleased\n\n- Later.\n", 1))
    assert "not committed" in release("prepare", "9.8.8", root=checkout).stderr
    commit(checkout)
    late = release("ready", "9.8.7", root=checkout)
    assert (late.returncode, "came after the section of 9.8.7" in late.stderr) == (2, True)
    assert release("prepare", "9.8.8", root=checkout).returncode == 0
    git(checkout, "tag", "v9.8.8")
    assert "exists already" in release("prepare", "9.8.8", root=checkout).stderr


@pytest.mark.parametrize(
    ("name", "old", "new", "told"),
    [
        ("CITATION.cff", "\nversion: ", "\nversion: 1", "CITATION.cff, version: 1"),
        (
            "Cargo.toml",
            '"crates/wire", version = "',
            '"crates/wire", version = "1',
            "Cargo.toml, workspace.dependencies: ",
        ),
        ("pyproject.toml", 'dynamic = ["version"]', 'version = "1.0.0"', "pyproject.toml, project.dynamic"),
        ("CHANGELOG.md", "## Unreleased\n", "## Next\n", "CHANGELOG.md: no section `## Unreleased`"),
    ],
)
def test_files_that_disagree_are_named(checkout: Path, name: str, old: str, new: str, told: str) -> None:
    text = (checkout / name).read_text()
    assert text.count(old) >= 1
    (checkout / name).write_text(text.replace(old, new, 1))
    done = release("check", root=checkout)
    assert done.returncode == 2
    assert told in done.stderr


@pytest.mark.parametrize("version", ["", "1.2", "v1.2.3", "1.02.3", "1.2.3; true"])
def test_what_is_no_version_is_refused(checkout: Path, version: str) -> None:
    done = release("cut", version, root=checkout)
    assert done.returncode == 2
    assert f"VERSION is {version!r}; allowed: MAJOR.MINOR.PATCH, such as 0.2.0" in done.stderr
