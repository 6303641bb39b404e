"""Recipes, manifests and the release workflow have what those who read them require."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import yaml

from conftest import ROOT

PACKAGING = ROOT / "packaging"
JOBS = {"mpijob": ("mpiReplicaSpecs", "kubeflow.org/v2beta1"), "pytorchjob": ("pytorchReplicaSpecs", "kubeflow.org/v1")}
# What would need a device plugin, or rights on the node.
PRIVILEGES = {"privileged", "hostNetwork", "hostPID", "hostIPC", "hostPath", "add"}


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def keys(value: Any) -> set[str]:
    """All keys of a document, at any depth."""
    if isinstance(value, dict):
        return set(value) | {key for inner in value.values() for key in keys(inner)}
    return {key for inner in value for key in keys(inner)} if isinstance(value, list) else set()


def test_every_file_says_how_it_is_checked() -> None:
    files = [path for path in PACKAGING.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    files.append(ROOT / ".github" / "workflows" / "release.yml")
    assert len(files) == 8
    for path in files:
        head = path.read_text(encoding="utf-8").split("\n")[:15]
        said = " ".join(line.removeprefix("# ") for line in head if line.startswith("#"))
        checked = re.search(r"[Cc]hecked by (\S+?)[,.:]? ", said + " ")
        assert checked, path
        assert (ROOT / checked[1]).exists(), path


@pytest.mark.parametrize("name", JOBS)
def test_jobs_ask_for_no_rights(name: str) -> None:
    job = load(PACKAGING / "kubernetes" / f"{name}.yaml")
    replicas, version = JOBS[name]
    assert job["apiVersion"] == version and job["kind"].lower() == name
    assert re.fullmatch(r"[a-z][a-z0-9-]*", job["metadata"]["name"])
    assert not keys(job) & PRIVILEGES
    roles = job["spec"][replicas]
    assert set(roles) == ({"Launcher", "Worker"} if name == "mpijob" else {"Master", "Worker"})
    for role in roles.values():
        assert role["replicas"] >= 1
        pod = role["template"]["spec"]
        assert pod["securityContext"] == {"runAsNonRoot": True, "runAsUser": 1000, "fsGroup": 1000}
        (volume,) = pod["volumes"]
        # Its user reads the key by its group; others may not.
        assert volume["secret"] == {"secretName": "pathweave-key", "defaultMode": 0o440}
        (container,) = pod["containers"]
        assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
        (mount,) = container["volumeMounts"]
        assert mount == {"name": volume["name"], "mountPath": "/etc/pathweave", "readOnly": True}
        assert set(container.get("resources", {}).get("limits", {})) <= {"nvidia.com/gpu"}
        for variable in container.get("env", []):
            assert variable == {"name": "PATHWEAVE_KEY_FILE", "value": "/etc/pathweave/cluster.key"}


def test_the_launcher_passes_on_what_ranks_need() -> None:
    job = load(PACKAGING / "kubernetes" / "mpijob.yaml")["spec"]
    launcher = job["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    words = [*launcher["command"], *launcher["args"]]
    exported = {words[at + 1] for at, word in enumerate(words) if word == "-x"}
    assert exported == {"FI_PROVIDER_PATH", "PATHWEAVE_KEY_FILE"}
    ranks = int(words[words.index("-n") + 1])
    assert ranks == job["slotsPerWorker"] * job["mpiReplicaSpecs"]["Worker"]["replicas"]
    # The same words as in docs/mpi.md.
    documented = (ROOT / "docs" / "mpi.md").read_text(encoding="utf-8")
    assert "--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include pathweave" in documented
    assert "--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include pathweave" in " ".join(words)


def test_the_containers_user_is_that_of_the_job() -> None:
    text = (PACKAGING / "Containerfile").read_text(encoding="utf-8")
    uid = load(PACKAGING / "kubernetes" / "mpijob.yaml")["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    assert f"useradd --create-home --uid {uid['securityContext']['runAsUser']} " in text
    words = [line.split(" ")[0] for line in text.splitlines() if line and not line.startswith("#")]
    assert words[0] == "FROM" and set(words) == {"FROM", "RUN", "COPY", "ENV", "USER", "WORKDIR", "CMD"}


@pytest.mark.parametrize("name", ["mpi", "nccl"])
def test_scripts_for_slurm_are_shell(name: str) -> None:
    path = PACKAGING / "slurm" / f"{name}.sbatch"
    assert subprocess.run(["bash", "-n", path]).returncode == 0
    assert "#SBATCH --nodes=" in path.read_text(encoding="utf-8")


def test_the_recipe_of_conda_asks_for_what_the_project_asks_for() -> None:
    recipe = load(PACKAGING / "conda" / "recipe.yaml")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert recipe["schema_version"] == 1 and recipe["package"]["name"] == project["project"]["name"]
    wanted = {"".join(line.split()) for line in recipe["requirements"]["host"] + recipe["requirements"]["run"]}
    assert wanted >= {*project["build-system"]["requires"], *project["project"]["dependencies"]}
    assert f"python{project['project']['requires-python']}" in wanted
    assert recipe["about"]["license"] == "Apache-2.0"
    assert (PACKAGING / "conda" / recipe["source"]["path"] / recipe["about"]["license_file"]).is_file()


class Recorder:
    """Stands in for Spack: what the recipe declares, and what it does."""

    def __init__(self) -> None:
        self.declared: list[tuple[Any, ...]] = []
        self.done: list[tuple[Any, ...]] = []

    def module(self) -> ModuleType:
        """The module that the recipe imports all of."""
        module = ModuleType("spack.package")
        for name in ("license", "version", "depends_on"):
            setattr(module, name, lambda *words, name=name, **_: self.declared.append((name, *words)))
        for name in ("install", "mkdirp"):
            setattr(module, name, lambda *words, name=name: self.done.append((name, *words)))
        module.__dict__["join_path"] = lambda *parts: "/".join(parts)
        module.__dict__["which"] = lambda program, required: lambda *words: self.done.append((program, *words))
        module.__dict__["Package"] = object
        return module


def test_the_recipe_of_spack_installs_where_the_program_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder()
    monkeypatch.setitem(sys.modules, "spack", ModuleType("spack"))
    monkeypatch.setitem(sys.modules, "spack.package", recorder.module())
    names: dict[str, Any] = {}
    path = PACKAGING / "spack" / "package.py"
    exec(compile(path.read_text(encoding="utf-8"), path, "exec"), names)
    package = names["Pathweave"]()
    assert ("license", "Apache-2.0") in recorder.declared
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]
    assert ("depends_on", f"rust@{workspace['rust-version']}:") in recorder.declared
    package.install(None, SimpleNamespace(bin="/p/bin", lib="/p/lib"))
    assert recorder.done[0][:3] == ("cargo", "build", "--locked")
    places = [words[-1] for words in recorder.done if words[0] == "install"]
    assert places == ["/p/bin", "/p/lib/libfabric/libpathweave-fi.so", "/p/lib/libnccl-net-pathweave.so"]


def test_a_person_starts_a_release() -> None:
    workflow = load(ROOT / ".github" / "workflows" / "release.yml")
    # YAML reads the key `on` as true.
    assert set(workflow[True]) == {"workflow_dispatch"}
    assert workflow["permissions"] == {"contents": "read"}
    job = workflow["jobs"]["packages"]
    assert [entry["machine"] for entry in job["strategy"]["matrix"]["include"]] == ["x86_64", "aarch64"]
    build = next(step for step in job["steps"] if "maturin" in step.get("uses", ""))["with"]
    script = next(word for word in build["before-script-linux"].split() if word.endswith(".py"))
    assert (ROOT / script).is_file()
    profile = re.findall(r"--profile (\w+)", build["before-script-linux"] + build["args"])
    assert profile == ["tuned", "tuned"]
    commands = [step["run"] for step in job["steps"] if "run" in step]
    # The tag of the image is what the check demands.
    check = f".ci/wheel --most-glibc {build['manylinux'].replace('_', '.')} target/wheels/*.whl"
    assert check in commands
    targets = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in commands:
        program, *words = command.split()
        assert (ROOT / program).exists() or (program == "make" and f"\n{words[0]}:" in targets), command
