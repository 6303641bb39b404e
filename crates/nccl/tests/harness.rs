//! The shared library as NCCL uses it: a client in C opens it and calls each version's table from ranks in a ring.
//! Skipped without a C compiler.

#![allow(clippy::print_stderr, reason = "says why a test is skipped, and what was measured")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, OnceLock};

/// Addresses of the ranks' interfaces.
const ONE: &str = "127.0.0.1";
const TWO: &str = "127.0.0.1,127.0.0.2";
const THREE: &str = "127.0.0.1,127.0.0.2,127.0.0.3";
/// Checks of the client: sizes, messages that are too long, groups, optional completions.
const BASIC: &str = "1234";

/// Files of the tests.
struct Bench {
    client: PathBuf,
    library: PathBuf,
    key: PathBuf,
}

/// Returns the files; `None` without a C compiler.
fn bench() -> Option<&'static Bench> {
    static BENCH: OnceLock<Option<Bench>> = OnceLock::new();
    BENCH.get_or_init(build).as_ref()
}

fn build() -> Option<Bench> {
    let mut folder = std::env::current_exe().unwrap();
    folder.pop();
    let found = [folder.join("libnccl_net_pathweave.so"), folder.join("../libnccl_net_pathweave.so")];
    let library = found.into_iter().find(|path| path.is_file()).expect("the library is built with the tests");
    let (client, key) = (folder.join("nccl-harness"), folder.join("nccl-harness-key"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/harness.c");
    let compiler = Command::new("cc")
        .args(["-O2", "-Wall", "-Werror", "-o"])
        .arg(&client)
        .arg(source)
        .args(["-ldl", "-lpthread"])
        .status();
    let Ok(status) = compiler else {
        eprintln!("skipped: there is no C compiler (cc)");
        return None;
    };
    assert!(status.success(), "the client is compiled");
    fs::write(&key, "0123456789abcdef2f6b1c09d84e37a5".repeat(2)).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    Some(Bench { client, library, key })
}

/// Runs the client.
fn run(bench: &Bench, version: u32, ranks: u32, protection: &str, addresses: &str, checks: &str) -> Output {
    // A run keeps both cores of a small machine busy, but for those that wait for the end of a time.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let waits = checks == "8" || checks == "d";
    let _turn = (!waits).then(|| ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    let mut command = Command::new(&bench.client);
    command.arg(&bench.library).args([version.to_string(), ranks.to_string(), checks.to_owned()]);
    command.env("PATHWEAVE_PROTECTION", protection).env("PATHWEAVE_ADDRESS", addresses);
    let timeout = if waits { "2" } else { "30" };
    if checks == "5" {
        // Each connection proves each pair of addresses with packets of full length, which are 32 KiB long on loopback.
        command.env("PATHWEAVE_MTU", "1500");
    }
    command.env("PATHWEAVE_KEY_FILE", &bench.key).env("PATHWEAVE_PEER_TIMEOUT", timeout);
    command.stdin(Stdio::null()).output().unwrap()
}

/// Runs the client and expects that it finds no fault. Prints the largest CPU time of a call, which no test judges: an
/// interrupt counts as the time of the call that it meets.
fn passes(bench: &Bench, version: u32, ranks: u32, protection: &str, addresses: &str, checks: &str) {
    let output = run(bench, version, ranks, protection, addresses, checks);
    let text = String::from_utf8_lossy(&output.stdout);
    let context = format!("version {version}, {ranks} ranks, {protection}, {addresses}, checks {checks}");
    assert!(output.status.success(), "{context}: {}{text}", String::from_utf8_lossy(&output.stderr));
    eprintln!("{context}: {}", text.trim().replace('\n', "; "));
}

#[test]
fn no_call_waits_for_the_other_end() {
    let Some(bench) = bench() else { return };
    for (version, protection, addresses) in
        [(6, "insecure", ONE), (9, "encrypt", TWO), (12, "encrypt", THREE)]
    {
        passes(bench, version, 1, protection, addresses, "b1234");
    }
}

#[test]
fn every_version_carries_every_message() {
    let Some(bench) = bench() else { return };
    let cases = [(2, "insecure", ONE), (4, "encrypt", THREE), (2, "encrypt", ONE), (4, "insecure", THREE)];
    for version in 6..=12 {
        // The oldest and the newest version in all cases, the others in two each.
        let all = version == 6 || version == 12;
        let of_version =
            cases.iter().enumerate().filter(|(index, _)| all || index / 2 == version as usize % 2);
        for (_, (ranks, protection, addresses)) in of_version {
            passes(bench, version, *ranks, protection, addresses, BASIC);
        }
    }
    passes(bench, 12, 2, "auth-only", THREE, BASIC);
}

#[test]
fn many_connections_early_closes_forks_and_another_load() {
    let Some(bench) = bench() else { return };
    passes(bench, 12, 2, "encrypt", TWO, "5");
    for (version, protection, addresses) in [(12, "encrypt", THREE), (8, "insecure", ONE)] {
        passes(bench, version, 2, protection, addresses, "79a");
    }
}

#[test]
fn memory_that_is_taken_back_and_unmapped_is_not_touched() {
    let Some(bench) = bench() else { return };
    for (version, protection, addresses) in [(11, "encrypt", THREE), (6, "insecure", ONE)] {
        passes(bench, version, 2, protection, addresses, "6");
    }
}

#[test]
fn a_peer_that_is_dead_or_absent_is_an_error_in_time() {
    let Some(bench) = bench() else { return };
    passes(bench, 12, 2, "encrypt", THREE, "8");
    passes(bench, 12, 2, "encrypt", ONE, "d");
}

#[test]
fn bad_settings_are_one_line_and_a_fall_back() {
    let Some(bench) = bench() else { return };
    let refuses = |variables: &[(&str, &str)], said: &str| {
        let mut command = Command::new(&bench.client);
        command.arg(&bench.library).args(["12", "1", "1"]);
        command.env_remove("PATHWEAVE_KEY_FILE").envs(variables.iter().copied());
        let output = command.stdin(Stdio::null()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(102), "a system error: {text}");
        assert!(
            text.lines().count() == 1 && text.starts_with("pathweave: ") && text.contains(said),
            "{text}"
        );
    };
    let open = ("PATHWEAVE_PROTECTION", "insecure");
    refuses(&[], "there is no key");
    refuses(&[open, ("PATHWEAVE_IFACE", "nosuch0")], "nosuch0");
    refuses(&[open, ("PATHWEAVE_NCCL_LOOPS", "99")], "PATHWEAVE_NCCL_LOOPS is \"99\"; allowed: 1 to 16");
    refuses(&[open, ("PATHWEAVE_PATHS", "999")], "1 to 256");
}
