"""A release: one version everywhere, a workflow that publishes what it tried and nothing by a secret."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import yaml

import llmfeas

ROOT = Path(__file__).parent.parent
WORKFLOW = ROOT / ".github" / "workflows" / "release.yml"


def workflow() -> dict[Any, Any]:
    return dict(yaml.safe_load(WORKFLOW.read_text(encoding="utf-8")))


def test_there_is_one_version_and_the_changelog_begins_with_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" not in project["project"] and project["project"]["dynamic"] == ["version"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/llmfeas/__init__.py"
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] == llmfeas.__version__


def test_only_the_job_that_publishes_may_publish_and_only_from_a_tag() -> None:
    jobs = workflow()["jobs"]
    assert workflow()["permissions"] == {}
    assert [name for name, job in jobs.items() if "id-token" in job["permissions"]] == ["publish"]
    assert jobs["publish"]["if"] == "startsWith(github.ref, 'refs/tags/')" and jobs["publish"]["environment"] == "pypi"
    assert set(jobs["publish"]["needs"]) == {"build", "try"}
    assert "secrets." not in WORKFLOW.read_text(encoding="utf-8")


def test_every_python_that_is_named_is_tried() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [each.rpartition(" ")[2] for each in project["classifiers"] if "Python :: 3." in each]
    assert workflow()["jobs"]["try"]["strategy"]["matrix"]["python"] == named


def test_no_expression_stands_in_a_command() -> None:
    commands = [step["run"] for job in workflow()["jobs"].values() for step in job["steps"] if "run" in step]
    assert commands and not any("${{" in command for command in commands)
