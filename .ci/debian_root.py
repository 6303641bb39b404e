"""A bare Debian of this machine's release below a folder: its essential packages and those named, configured.

It lives in namespaces of its own, has no network, and nothing outside its folder is written. Where the machine is no
Debian, or may not do this, it says so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

TOOLS = ("apt-get", "apt-cache", "dpkg-deb", "tar", "unshare", "chroot")
# Processes that a script leaves behind end with it.
NAMESPACE = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--net", "--uts", "--propagation", "private"]
ENTER = """
mount -t proc proc "$1/proc"
for device in null zero urandom random tty; do : >"$1/dev/$device"; mount --bind "/dev/$device" "$1/dev/$device"; done
mkdir -p "$1/dev/shm" "$1/dev/pts"
mount -t tmpfs shm "$1/dev/shm"
ip link set lo up 2>/dev/null || true
hostname debian
exec chroot "$1" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 sh -euc "$2"
"""
# What an installer does before the first package is configured.
CONFIGURE = """
export DEBIAN_FRONTEND=noninteractive
cp /usr/share/base-passwd/passwd.master /etc/passwd
cp /usr/share/base-passwd/group.master /etc/group
echo 127.0.0.1 localhost debian >/etc/hosts
# No package starts a service.
printf '#!/bin/sh\\nexit 101\\n' >/usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d
: >/var/lib/dpkg/status
dpkg --force-unsafe-io --force-depends --unpack /archives/*.deb
dpkg --force-unsafe-io --configure -a
rm -r /archives
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
            raise Unavailable("this process may not have namespaces of its own")
        self.path = folder / "root"
        shutil.rmtree(self.path, ignore_errors=True)
        # Folders of programs and libraries are one since Debian 12; packages are not told so.
        for name in ("bin", "sbin", "lib", "lib64"):
            (self.path / "usr" / name).mkdir(parents=True)
            (self.path / name).symlink_to(f"usr/{name}")
        for archive in _download(folder, self.path / "archives", [*_essential(), *packages]):
            self._unpack(archive)
        self.run(CONFIGURE)

    def _unpack(self, archive: Path) -> None:
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", archive], stdout=subprocess.PIPE) as content:
            unpack = ["tar", "-x", "--keep-directory-symlink", "-C", self.path]
            subprocess.run(unpack, stdin=content.stdout, check=True)
        if content.returncode:
            raise RuntimeError(f"{archive}: cannot be unpacked")

    def run(self, script: str, timeout_s: float = 600) -> str:
        """Runs a script of the shell in it, until its first error, and returns what it printed.

        Raises:
            RuntimeError: It failed; with what it said.
        """
        command = [*NAMESPACE, "sh", "-euc", ENTER, "enter", str(self.path), script]
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s)
        if done.returncode:
            said = f"{done.stdout[-3000:]}{done.stderr[-3000:]}"
            raise RuntimeError(f"in a bare Debian: exit {done.returncode}\n{said}")
        return done.stdout


def _essential() -> list[str]:
    """The packages that every Debian has."""
    told = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True).stdout
    records = [record.splitlines() for record in told.split("\n\n") if "\nEssential: yes" in record]
    names = sorted({line.removeprefix("Package: ") for record in records for line in record if line[:9] == "Package: "})
    if not names:
        raise Unavailable("apt-cache knows no packages: `apt-get update` fetches their lists")
    return names


def _download(folder: Path, archives: Path, packages: list[str]) -> list[Path]:
    """Fetches packages as for a system that has none."""
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
    return sorted(archives.glob("*.deb"))
