//! Other programs over the provider, if they are installed: fi_info, fi_pingpong, Open MPI. All run on
//! loopback.

#![allow(clippy::print_stderr, reason = "says why a test is skipped")]

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

/// Returns a folder with the library under the name that libfabric looks for.
fn provider_folder() -> PathBuf {
    let mut folder = std::env::current_exe().unwrap();
    folder.pop();
    let found = [folder.join("libpathweave_fi.so"), folder.join("../libpathweave_fi.so")];
    let library = found.into_iter().find(|path| path.is_file()).expect("the library is built with the tests");
    // The folder contains only this library: libfabric takes the first one that it finds, and an earlier
    // build may have left another.
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER
        .get_or_init(|| {
            let to = folder.join("provider");
            std::fs::create_dir_all(&to).unwrap();
            for old in std::fs::read_dir(&to).unwrap().flatten() {
                let _ = std::fs::remove_file(old.path());
            }
            let new = to.join("new");
            std::fs::copy(library, &new).unwrap();
            std::fs::rename(new, to.join("libpathweave-fi.so")).unwrap();
            to
        })
        .clone()
}

fn prepared(program: &str) -> Command {
    let mut command = Command::new("timeout");
    command.args(["-k", "5", "120", program]);
    command.env("FI_PROVIDER_PATH", provider_folder());
    command.env("PATHWEAVE_PROTECTION", "insecure").env("PATHWEAVE_IFACE", "lo").env("PATHWEAVE_PATHS", "4");
    command.stdin(Stdio::null());
    command
}

fn is_missing(program: &str) -> bool {
    let missing = Command::new(program).arg("--version").output().is_err();
    if missing {
        eprintln!("skipped: there is no {program}");
    }
    missing
}

#[test]
fn fi_info_shows_it_and_says_why_not() {
    if is_missing("fi_info") {
        return;
    }
    let output = prepared("fi_info").args(["-p", "pathweave"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("FI_EP_RDM") && text.contains("127.0.0.0/8"), "{text}");
    for (variable, value, said) in [
        ("PATHWEAVE_PATHS", "999", "PATHWEAVE_PATHS is \"999\"; allowed: 1 to 256"),
        ("PATHWEAVE_PROTECTION", "encrypt", "there is no key"),
        ("PATHWEAVE_IFACE", "nosuch", "the name nosuch"),
    ] {
        let output = prepared("fi_info").args(["-p", "pathweave"]).env(variable, value).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(61), "FI_ENODATA");
        let lines = text.lines().filter(|line| line.starts_with("pathweave: ") && line.contains(said));
        assert_eq!(lines.count(), 1, "{text}");
    }
}

/// Prepares a program with several addresses.
fn at(program: &str, addresses: &str) -> Command {
    let mut command = prepared(program);
    command.env_remove("PATHWEAVE_IFACE").env("PATHWEAVE_ADDRESS", addresses);
    command
}

#[test]
fn several_addresses_are_one_interface_and_wrong_ones_are_named() {
    if is_missing("fi_info") {
        return;
    }
    let output = at("fi_info", "127.0.0.1,127.0.0.2").args(["-p", "pathweave"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text.matches("FI_EP_RDM").count(), 1, "{text}");
    for (value, said) in [
        ("127.0.0.1,192.0.2.7", "the address 192.0.2.7 (PATHWEAVE_ADDRESS)"),
        ("127.0.0.1,127.0.0.1", "PATHWEAVE_ADDRESS is \"127.0.0.1,127.0.0.1\"; allowed: an address"),
        ("127.0.0.1,::1", "all IPv4 or all IPv6"),
    ] {
        let output = at("fi_info", value).args(["-p", "pathweave"]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(61), "FI_ENODATA");
        let lines = text.lines().filter(|line| line.starts_with("pathweave: ") && line.contains(said));
        assert_eq!(lines.count(), 1, "{text}");
    }
}

#[test]
fn fi_pingpong_over_several_addresses() {
    if is_missing("fi_pingpong") {
        return;
    }
    let number = free_port();
    let port = number.to_string();
    let common = ["-p", "pathweave", "-e", "rdm", "-I", "50", "-c", "-m", "tagged"];
    let mut server = at("fi_pingpong", "127.0.0.1,127.0.0.2")
        .args(common)
        .args(["-B", &port])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    until_listening(number);
    let client = at("fi_pingpong", "127.0.0.1,127.0.0.3,127.0.0.4")
        .args(common)
        .args(["-P", &port, "127.0.0.1"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&client.stdout);
    assert!(client.status.success(), "{text}{}", String::from_utf8_lossy(&client.stderr));
    assert!(text.contains("1m "), "{text}");
    assert!(server.wait().unwrap().success());
}

/// Returns a port below the range of ephemeral ports, which another test's socket may get at any time.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = 20_000 + std::process::id() as u16 % 10_000;
    loop {
        let port = start + NEXT.fetch_add(1, Ordering::Relaxed);
        if TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).is_ok() {
            return port;
        }
    }
}

/// Waits until a program listens on this port, without connecting to it.
fn until_listening(port: u16) {
    let listens = |table: &str| {
        // Columns: sl, local address, remote address, state; 0A is TCP_LISTEN.
        let text = std::fs::read_to_string(table).unwrap_or_default();
        text.lines().any(|line| {
            let mut words = line.split_whitespace().skip(1);
            words.next().is_some_and(|local| local.ends_with(&format!(":{port:04X}")))
                && words.nth(1) == Some("0A")
        })
    };
    let give_up = Instant::now() + Duration::from_secs(60);
    while !["/proc/net/tcp", "/proc/net/tcp6"].into_iter().any(listens) {
        assert!(Instant::now() < give_up, "nobody listens on {port}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn fi_pingpong_with_and_without_tags() {
    if is_missing("fi_pingpong") {
        return;
    }
    for mode in ["tagged", "msg"] {
        let number = free_port();
        let port = number.to_string();
        let common = ["-p", "pathweave", "-e", "rdm", "-I", "50", "-c", "-m", mode];
        let mut server =
            prepared("fi_pingpong").args(common).args(["-B", &port]).stdout(Stdio::null()).spawn().unwrap();
        until_listening(number);
        let client = prepared("fi_pingpong").args(common).args(["-P", &port, "127.0.0.1"]).output().unwrap();
        let text = String::from_utf8_lossy(&client.stdout);
        assert!(client.status.success(), "{mode}: {text}{}", String::from_utf8_lossy(&client.stderr));
        assert!(text.contains("1m "), "{text}");
        assert!(server.wait().unwrap().success());
    }
}

/// Runs NCCL's use of a network plugin, on host memory: connections, registrations, requests in flight.
#[test]
fn a_plugin_of_nccl_exchanges_byte_exact() {
    if is_missing("cc") {
        return;
    }
    let folder = std::env::temp_dir().join(format!("pathweave-nccl-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let program = folder.join("nccl");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-o"]).arg(&program).args(["nccl.c", "sendrecv.c"].map(|name| sources.join(name)));
    let built = compiler.args(["-lfabric", "-ldl"]).output().unwrap();
    if !built.status.success() {
        let said = String::from_utf8_lossy(&built.stderr);
        assert!(said.contains("rdma/fabric.h") || said.contains("-lfabric"), "{said}");
        return eprintln!("skipped: libfabric's headers are missing");
    }
    // A variable may name another plugin, such as aws-ofi-nccl's libnccl-net.so.
    let plugins = std::iter::once("sendrecv".to_owned()).chain(std::env::var("PATHWEAVE_NCCL_PLUGIN"));
    for plugin in plugins {
        for ranks in ["2", "4"] {
            let mut command = prepared(program.to_str().unwrap());
            let output =
                command.args([&plugin, ranks, "4"]).env("OFI_NCCL_PROTOCOL", "SENDRECV").output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{plugin}, {ranks} processes: {text}{errors}");
            assert!(text.contains(&format!("messages exact among {ranks} ranks")), "{text}{errors}");
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Compiles a program that sends in a ring, sums and exchanges all to all, and checks every byte.
fn mpi_program(compiler: &str, folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/exchange.c");
    let program = folder.join(format!("exchange-{compiler}"));
    let built = Command::new(compiler).arg("-O1").arg("-o").arg(&program).arg(source).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    program
}

#[test]
fn open_mpi_exchanges_byte_exact() {
    if is_missing("mpirun.openmpi") || is_missing("mpicc.openmpi") {
        return;
    }
    let folder = std::env::temp_dir().join(format!("pathweave-mpi-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let program = mpi_program("mpicc.openmpi", &folder);
    for (ranks, shared) in [("2", "on"), ("4", "on"), ("2", "off"), ("4", "off")] {
        let output = prepared("mpirun.openmpi")
            .env("PATHWEAVE_SHARED_MEMORY", shared)
            .args(["--allow-run-as-root", "--oversubscribe", "-n", ranks])
            .args([
                "--mca",
                "pml",
                "cm",
                "--mca",
                "mtl",
                "ofi",
                "--mca",
                "mtl_ofi_provider_include",
                "pathweave",
            ])
            .args(["--mca", "mpi_yield_when_idle", "1"])
            .arg(&program)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{ranks} ranks, {shared}: {text}{errors}");
        assert!(text.contains(&format!("exact among {ranks} ranks")), "{text}{errors}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
