"""A bare Debian of this machine's release below a folder: packages as they are unpacked, in a mount namespace of its own.

It has no network, and nothing outside its folder is written. Where the machine is no Debian, or may not do this, it says so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

# What a shell script needs at least.
LEAST = ("base-files", "base-passwd", "bash", "coreutils", "dash", "libc-bin", "sed", "grep")
TOOLS = ("apt-get", "dpkg-deb", "tar", "unshare", "chroot")
NAMESPACE = ["unshare", "--mount", "--net", "--propagation", "private"]
ENTER = """
mount -t proc proc "$1/proc"
for device in null zero urandom tty; do : >"$1/dev/$device"; mount --bind "/dev/$device" "$1/dev/$device"; done
mkdir -p "$1/dev/shm"
mount -t tmpfs shm "$1/dev/shm"
ip link set lo up 2>/dev/null || true
exec chroot "$1" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 sh -c "$2"
"""


class Unavailable(Exception):
    """Why there is no such root on this machine."""


class DebianRoot:
    """A root that is made anew."""

    def __init__(self, folder: Path, packages: Iterable[str]) -> None:
        """Makes it, with these packages and what they depend on."""
        missing = [tool for tool in TOOLS if shutil.which(tool) is None]
        if missing:
            raise Unavailable(f"there is no {', '.join(missing)}")
        if os.geteuid() != 0:
            raise Unavailable("only root may change the root of a process")
        if subprocess.run([*NAMESPACE, "true"], capture_output=True).returncode:
            raise Unavailable("this process may not have a mount namespace of its own")
        self.path = folder / "root"
        shutil.rmtree(self.path, ignore_errors=True)
        archives = folder / "archives"
        _download(folder, archives, [*LEAST, *packages])
        self._unpack(sorted(archives.glob("*.deb")))

    def _unpack(self, archives: list[Path]) -> None:
        for name in ("bin", "sbin", "lib", "lib64"):
            (self.path / "usr" / name).mkdir(parents=True)
            (self.path / name).symlink_to(f"usr/{name}")
        for archive in archives:
            with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", archive], stdout=subprocess.PIPE) as content:
                unpack = ["tar", "-x", "--keep-directory-symlink", "-C", self.path]
                subprocess.run(unpack, stdin=content.stdout, check=True)
            if content.returncode:
                raise RuntimeError(f"{archive}: cannot be unpacked")
        self.run("ldconfig")

    def run(self, script: str, timeout_s: float = 300) -> subprocess.CompletedProcess[str]:
        """Runs a script of the shell in it.

        Raises:
            RuntimeError: It failed; with what it said.
        """
        done = subprocess.run(
            [*NAMESPACE, "sh", "-euc", ENTER, "enter", self.path, script],
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )
        if done.returncode:
            raise RuntimeError(f"in a bare Debian: exit {done.returncode}\n{script}\n{done.stdout}{done.stderr}")
        return done


def _download(folder: Path, archives: Path, packages: list[str]) -> None:
    """Fetches packages as for a system that has none; those of another choice go."""
    shutil.rmtree(archives, ignore_errors=True)
    (archives / "partial").mkdir(parents=True)
    (folder / "status").write_text("")
    options = {
        "Dir::State::status": folder / "status",
        "Dir::Cache::archives": archives,
        "Dir::Cache::pkgcache": "",
        "Dir::Cache::srcpkgcache": "",
        "APT::Install-Recommends": "false",
        # The folder of archives is this one's alone; nothing of the system is locked.
        "Debug::NoLocking": "true",
        # Downloaded by the user who unpacks.
        "APT::Sandbox::User": "root",
    }
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    command = ["apt-get", "--quiet", "--yes", "--download-only", *words, "install", *packages]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise Unavailable(f"apt-get has no packages for it: {done.stderr.strip()}")
