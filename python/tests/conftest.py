"""What the tests share."""

from pathlib import Path

import pytest

import pathweave as pw

ROOT = Path(__file__).parents[2]

SMALL = """
seed = 7
[topology]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 2

[[workload]]
kind = "permutation"
size = "64KB"
"""


@pytest.fixture
def small() -> pw.Scenario:
    """Four hosts and a permutation: a run of milliseconds."""
    return pw.Scenario.from_toml(SMALL)
