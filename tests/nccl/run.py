#!/usr/bin/env python3
"""Functional tests of aws-ofi-nccl over NCCL's network plug-in, on loopback and on host memory.

They are compiled from a source tree that the caller names, with a stand-in for CUDA's runtime that knows no device.
Skipped without a source tree or an MPI.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TESTS = [
    "nccl_connection",
    "nccl_message_transfer",
    "ring",
    "grouped_recv",
    "reuse_listen_comm",
    "inflight_close",
]
RANKS = 2
#: Longest time of a test.
SECONDS = 300

CUDA_RUNTIME = """
#pragma once
#include <stdlib.h>
#include <string.h>
typedef int cudaError_t;
typedef void *cudaStream_t;
enum { cudaSuccess = 0 };
enum { cudaHostAllocMapped = 2, cudaMemcpyDeviceToHost = 2 };
#define cudaStreamDefault 0
static inline const char *cudaGetErrorString(cudaError_t) { return "error"; }
static inline cudaError_t cudaMalloc(void **to, size_t size) { return posix_memalign(to, 4096, size); }
static inline cudaError_t cudaHostAlloc(void **to, size_t size, unsigned) { return posix_memalign(to, 4096, size); }
static inline cudaError_t cudaFree(void *at) { free(at); return cudaSuccess; }
static inline cudaError_t cudaFreeHost(void *at) { free(at); return cudaSuccess; }
static inline cudaError_t cudaMemset(void *at, int value, size_t size) { memset(at, value, size); return cudaSuccess; }
static inline cudaError_t cudaMemcpy(void *to, const void *from, size_t size, int) {
    memcpy(to, from, size);
    return cudaSuccess;
}
static inline cudaError_t cudaSetDevice(int) { return cudaSuccess; }
static inline cudaError_t cudaStreamSynchronize(long) { return cudaSuccess; }
"""
CONFIG = """
#define OFI_LIKELY(x) __builtin_expect(!!(x), 1)
#define OFI_UNLIKELY(x) __builtin_expect(!!(x), 0)
"""


def compiled(source: Path, folder: Path, name: str) -> Path:
    """The program of a test."""
    tests = source / "tests/functional"
    includes = [folder, source / "include", source / "3rd-party", source / "3rd-party/nccl/cuda/include", tests]
    subprocess.run(
        [
            "mpicxx",
            "-std=c++17",
            "-O1",
            "-w",
            *(f"-I{include}" for include in includes),
            "-o",
            folder / name,
            tests / "functional_test.cpp",
            tests / f"{name}.cpp",
            "-ldl",
            "-lpthread",
        ],
        check=True,
    )
    return folder / name


def main() -> int:
    """Runs all tests; returns the number that failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", type=Path, help="the plug-in: libnccl_net_pathweave.so")
    parser.add_argument("--aws", type=Path, help="source of aws-ofi-nccl")
    parser.add_argument("--only", nargs="+", choices=TESTS, default=TESTS)
    options = parser.parse_args()
    missing = [name for name in ("mpicxx", "mpirun") if shutil.which(name) is None]
    if options.aws is None or missing:
        print(f"SKIPPED: {'no source of aws-ofi-nccl (AWS=DIR)' if options.aws is None else f'no {missing[0]}'}")
        return 0
    failed = 0
    with tempfile.TemporaryDirectory(prefix="pathweave-nccl-") as name:
        folder = Path(name)
        (folder / "cuda_runtime.h").write_text(CUDA_RUNTIME)
        (folder / "config.h").write_text(CONFIG)
        shutil.copy(options.library, folder / "libnccl-net.so")
        variables = {
            **os.environ,
            "LD_LIBRARY_PATH": str(folder),
            "PATHWEAVE_PROTECTION": "insecure",
            "PATHWEAVE_IFACE": "lo",
            "PATHWEAVE_PEER_TIMEOUT": "20",
        }
        for test in options.only:
            program = compiled(options.aws, folder, test)
            try:
                run = subprocess.run(
                    ["mpirun", "-n", str(RANKS), program],
                    env=variables,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    timeout=SECONDS,
                )
                passed, output = run.returncode == 0, run.stdout
            except subprocess.TimeoutExpired as late:
                passed, output = False, f"{late.stdout or ''}\nnot finished after {SECONDS} s"
            print(f"{'passed' if passed else 'FAILED'}  {test}", flush=True)
            if not passed:
                failed += 1
                print(output[-4000:])
    return failed


if __name__ == "__main__":
    sys.exit(main())
