//! `pathweave lab` from outside: creating, using and removing labs, as root and without privileges, and the remains
//! after the program is stopped or killed half-way.

#![allow(clippy::print_stderr)] // Skipped tests are reported.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::{Done, Lab as Folder, Nobody, SMALL, done, labs_can_be_made, namespaces};

const STEP: Duration = Duration::from_millis(2);
const PATIENCE: Duration = Duration::from_secs(60);

const LEAF_SPINE: &str = "\
[topology]
kind = \"leaf-spine\"
leaves = 2
spines = 2
hosts_per_leaf = 2

[[workload]]
kind = \"permutation\"
size = \"100KB\"
";

/// Large enough that creating it takes a while.
const LARGE: &str = "\
[topology]
kind = \"fat-tree\"
k = 6

[[workload]]
kind = \"permutation\"
size = \"100KB\"
";

/// Folder with scenarios, and a lab name that no other test uses. The lab is removed on drop.
struct Story {
    folder: Folder,
    name: String,
}

impl Story {
    /// Creates the folder. Returns `None` and prints a message if labs cannot be created.
    fn new(test: &str) -> Option<Story> {
        if !labs_can_be_made(test) {
            return None;
        }
        let folder =
            Folder::new().file("fabric.toml", LEAF_SPINE).file("large.toml", LARGE).file("small.toml", SMALL);
        Some(Story { folder, name: format!("cli{}-{test}", std::process::id()) })
    }
    fn run(&self, args: &[&str]) -> Done {
        self.folder.run(&[&["lab"], args].concat())
    }
    #[track_caller]
    fn succeeds(&self, args: &[&str]) -> Done {
        let done = self.run(args);
        assert_eq!(done.code, 0, "{args:?}: {}", done.err);
        done
    }
    #[track_caller]
    fn refused(&self, args: &[&str], part: &str) {
        let done = self.run(args);
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{args:?}: {}", done.err);
        assert!(done.err.contains(part), "{part:?} is not in: {}", done.err);
    }
    /// Returns the number of namespaces of this story's lab.
    fn namespaces(&self) -> usize {
        namespaces(&self.name)
    }
    /// Starts to create the large lab, and returns when `namespaces` of its 99 exist.
    fn half_made(&self, namespaces: usize) -> Child {
        let mut command = self.folder.command(&["lab", "up", "large.toml", "--name", &self.name]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let since = Instant::now();
        while self.namespaces() < namespaces {
            assert!(since.elapsed() < PATIENCE, "the lab does not grow");
            sleep(STEP);
        }
        child
    }
}

impl Drop for Story {
    fn drop(&mut self) {
        if self.namespaces() > 0 {
            self.run(&["down", &self.name]);
        }
    }
}

#[test]
fn a_lab_from_beginning_to_end() {
    let Some(story) = Story::new("whole") else { return };
    let name = story.name.as_str();
    let up =
        story.succeeds(&["up", "fabric.toml", "--name", name, "--rate-scale", "1/1000", "--mtu", "1500"]);
    assert_eq!(up.out, format!("{name}\n"));
    assert!(up.err.contains("hosts: 4, switches: 4, links: 8; rates at 1/1000 of the file's"), "{}", up.err);
    assert!(up.err.contains("note: delays of links (up to 1us) are not emulated"), "{}", up.err);
    assert_eq!(story.namespaces(), 8);
    story.refused(&["up", "fabric.toml", "--name", name], "exists already: `pathweave lab down");

    let list: serde_json::Value = serde_json::from_str(&story.succeeds(&["list", "--json"]).out).unwrap();
    let mine = list.as_array().unwrap().iter().find(|lab| lab["name"] == name).unwrap();
    assert_eq!((&mine["hosts"], &mine["links"], &mine["rate_scale"]), (&4.into(), &8.into(), &0.001.into()));

    let addresses = story.succeeds(&["exec", "--lab", name, "host2", "--", "cat", "/proc/net/fib_trie"]).out;
    assert!(addresses.contains("10.1.0.3"), "{addresses}");
    let devices = story.succeeds(&["exec", "--lab", name, "leaf0", "--", "ls", "/sys/class/net"]).out;
    assert!(["p0", "p1", "p2", "p3"].iter().all(|port| devices.contains(port)), "{devices}");
    let code = story.run(&["exec", "--lab", name, "host0", "--", "sh", "-c", "exit 7"]).code;
    assert_eq!(code, 7, "the program's own exit code");

    story.succeeds(&["fail", "--lab", name, "leaf0-spine1", "down"]);
    assert!(story.succeeds(&["list"]).out.contains("down: leaf0-spine1"));
    let shown = story.succeeds(&["show", "--lab", name]).out;
    assert!(shown.contains("leaf0  10.2.0.1\n  p0 to host0: 100Mbps, up; packets sent: "), "{shown}");
    assert!(shown.contains("  p3 to spine1: 100Mbps, DOWN; "), "{shown}");
    story.succeeds(&["fail", "--lab", name, "spine1-leaf0", "up", "--reroute-after", "never"]);
    assert!(!story.succeeds(&["show", "--lab", name]).out.contains("DOWN"));

    let down = story.succeeds(&["down", name]);
    assert_eq!((down.out.as_str(), down.err), ("", format!("removed {name}: 8 network namespaces\n")));
    assert_eq!(story.namespaces(), 0);
    story.refused(&["down", name], "no lab is named");
}

/// The result has the same schema as the simulator's, every byte is compared, and nothing remains.
#[test]
fn a_scenario_runs_on_a_lab_beside_its_simulation() {
    let Some(mut story) = Story::new("run") else { return };
    let fault = "[[fault]]\nkind = \"link-down\"\nlink = \"leaf0-spine1\"\nat = \"20us\"\nup_at = \"60us\"\n";
    let own = "scheme = { base = \"udmp\", policy = { queue_target_rtts = 0.5 } }\n";
    story.folder = Folder::new()
        .file("fabric.toml", format!("{LEAF_SPINE}\n{fault}"))
        .file("own.toml", format!("{own}{LEAF_SPINE}"));
    let common = ["--name", &story.name, "--rate-scale", "1/1000"];
    let args =
        ["run", "fabric.toml", "--simulate", "--json", "--out", "out", "--set", "workload[0].size=500KB"];
    let done = story.succeeds(&[&args[..], &common].concat());
    let summaries: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    for (summary, name) in summaries.as_array().unwrap().iter().zip(["simulated", "lab"]) {
        assert_eq!(summary["run"]["name"], name);
        assert_eq!(
            (&summary["overall"]["count"], &summary["overall"]["unfinished"]),
            (&4.into(), &0.into()),
            "{name}"
        );
        assert!(story.folder.path("out").join(name).join("flows.parquet").exists());
    }
    // Half a megabyte at 100 Gb/s takes 40 us, which is 40 ms in the lab's time. A flow cannot be faster, except for
    // the 12 KB that a token bucket of 100 Mb/s passes at once.
    let least = summaries[1]["overall"]["slowdown"]["min"].as_f64().unwrap();
    assert!(least >= 1.0 - 12.0 / 500.0, "{least}");
    assert_eq!(story.namespaces(), 0);

    story.refused(
        &[&["run", "own.toml"], &common[..]].concat(),
        "has settings of its own; on real hosts a preset runs",
    );
    assert_eq!(story.namespaces(), 0, "also after an error");
}

#[test]
fn a_run_asked_to_stop_writes_what_it_has_and_removes_its_lab() {
    let Some(story) = Story::new("halt") else { return };
    let args =
        ["lab", "run", "fabric.toml", "--name", &story.name, "--rate-scale", "1/10000", "--out", "out"];
    let mut command = story.folder.command(&[&args[..], &["--set", "workload[0].size=100MB"]].concat());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let since = Instant::now();
    while story.namespaces() < 8 {
        assert!(since.elapsed() < PATIENCE, "the lab is not made");
        sleep(STEP);
    }
    // Most likely during the traffic, but any instant is valid.
    sleep(Duration::from_secs(2));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let done = done(&child.wait_with_output().unwrap());
    assert_eq!(done.code, 130, "{}", done.err);
    assert_eq!(story.namespaces(), 0);
    assert_eq!(story.folder.json("out/summary.json")["run"]["partial"], true);
}

#[test]
fn processes_in_a_lab_end_with_it() {
    let Some(story) = Story::new("end") else { return };
    story.succeeds(&["up", "small.toml", "--name", &story.name]);
    let mut command =
        story.folder.command(&["lab", "exec", "--lab", &story.name, "host1", "--", "sleep", "1000"]);
    let mut sleeper = command.spawn().unwrap();
    let since = Instant::now();
    // Until exec the process is pathweave.
    while fs::read_to_string(format!("/proc/{}/comm", sleeper.id())).unwrap().trim() != "sleep" {
        assert!(since.elapsed() < PATIENCE, "the program does not start");
        sleep(STEP);
    }
    assert!(story.succeeds(&["list"]).out.contains("processes: 1"));
    let down = story.succeeds(&["down", &story.name]);
    assert!(down.err.contains(&format!("ended process {} (sleep)", sleeper.id())), "{}", down.err);
    assert!(!sleeper.wait().unwrap().success());
}

#[test]
fn a_maker_killed_half_way_leaves_what_down_removes() {
    let Some(story) = Story::new("kill") else { return };
    for namespaces in [1, 20, 99] {
        let mut child = story.half_made(namespaces);
        child.kill().unwrap();
        child.wait().unwrap();
        let left = story.namespaces();
        assert!((namespaces..=99).contains(&left), "{left} namespaces");
        story.refused(&["up", "large.toml", "--name", &story.name], "exists already");
        if left < 99 {
            let listed = story.succeeds(&["list"]).out;
            assert!(listed.contains(&format!("\"{}\" is incomplete (", story.name)), "{listed}");
            story.refused(&["show", "--lab", &story.name], "is incomplete (");
        }
        let down = story.succeeds(&["down", &story.name]);
        assert_eq!(down.err, format!("removed {}: {left} network namespaces\n", story.name));
        assert_eq!(story.namespaces(), 0);
    }
}

#[test]
fn a_maker_asked_to_stop_takes_everything_back() {
    let Some(story) = Story::new("stop") else { return };
    for signal in ["-INT", "-TERM"] {
        let child = story.half_made(20);
        let pid = child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
        let done = done(&child.wait_with_output().unwrap());
        assert_eq!((done.code, done.out.as_str()), (130, ""), "{}", done.err);
        assert_eq!(done.err, "stopping: the parts of the lab made so far will be removed\n");
        assert_eq!(story.namespaces(), 0);
    }
}

#[test]
fn topology_files_make_labs_too() {
    let Some(mut story) = Story::new("file") else { return };
    let own = "host_names = [\"gpu/0\", \"gpu/1\"]\nrate = \"10Gbps\"\ndelay = \"1us\"\n\
        [[switch]]\nname = \"s\"\n[[link]]\na = \"gpu/0\"\nb = \"s\"\n[[link]]\na = \"gpu/1\"\nb = \"s\"\n";
    let hpcc = "3 1 2\n2\n0 2 25Gbps 1us 0\n1 2 25Gbps 1us 0\n";
    story.folder = Folder::new().file("own.toml", own).file("hpcc.txt", hpcc);
    for (file, host, scale) in [("own.toml", "gpu/0", "1/10"), ("hpcc.txt", "host0", "1/100")] {
        let up = story.succeeds(&["up", file, "--name", &story.name]);
        assert!(up.err.contains(&format!("rates at {scale} of the file's")), "{}", up.err);
        story.succeeds(&["exec", "--lab", &story.name, host, "--", "true"]);
        story.succeeds(&["down", &story.name]);
    }
    story.refused(&["up", "own.toml", "--seed", "1"], "--set and --seed change scenarios");
}

#[test]
fn wrong_names_and_values_are_answered_with_the_nearest() {
    let Some(story) = Story::new("wrong") else { return };
    let name = story.name.as_str();
    story.succeeds(&["up", "fabric.toml", "--name", name]);
    story.refused(&["exec", "--lab", name, "hosst1", "--", "true"], "did you mean \"host");
    story.refused(&["fail", "--lab", name, "leaf0-spine7", "down"], "did you mean \"leaf0-spine");
    story.refused(
        &["exec", "--lab", &name[..name.len() - 1], "host1", "--", "true"],
        &format!("did you mean \"{name}\"?"),
    );
    story.refused(
        &["exec", "--lab", name, "host1", "--", "no-such-program"],
        "cannot run no-such-program: No such file",
    );
    let up = |more: &[&'static str], part| story.refused(&[&["up", "fabric.toml"], more].concat(), part);
    up(&["--name", "My Lab"], "nearest: \"my-lab\"");
    up(&["--name", "a-name-that-is-much-too-long-for-a-lab"], "1 to 24 lower-case letters");
    up(&["--rate-scale", "2"], "above 0, at most 1");
    up(&["--rate-scale", "1e-9"], "links need at least 100Kbps");
    up(&["--mtu", "100"], "576 to 65535 bytes; nearest: 576");
    up(&["--queue", "1KB"], "10000 to 1000000000 bytes; nearest: 10000");
    up(&["--set", "topology.leaves=600"], "a lab may have at most 512");
    story
        .refused(&["fail", "--lab", name, "leaf0-spine0", "down", "--reroute-after", "soon"], "or \"never\"");
}

/// The same commands for a user without privileges, in a user namespace that ends with its last lab or with its
/// keeper.
#[test]
fn without_root_a_lab_lives_in_a_user_namespace() {
    let Some(story) = Story::new("nobody") else { return };
    let Some(nobody) = Nobody::new("without_root", "65534", LEAF_SPINE) else { return };
    let run = |args: &[&str]| nobody.lab(args);
    let up = run(&["up", "fabric.toml", "--name", &story.name]);
    if up.code == 2 && up.err.contains("allow user namespaces") {
        return eprintln!("\n*** SKIPPED: without_root: {} ***\n", up.err.trim());
    }
    assert_eq!((up.code, up.out.trim()), (0, story.name.as_str()), "{}", up.err);
    assert!(up.err.contains("for the same reason switches mark nothing"), "{}", up.err);
    assert_eq!(story.namespaces(), 0, "nothing of it in the machine's own list");
    assert!(run(&["list"]).out.contains("hosts: 4, switches: 4, links: 8, down: none"));
    assert!(!story.succeeds(&["list"]).out.contains(&story.name));
    let here =
        run(&["exec", "--lab", &story.name, "host2", "--", "sh", "-c", "pwd; cat fabric.toml | head -1"]);
    assert_eq!(here.out, format!("{}\n[topology]\n", nobody.folder().display()), "{}", here.err);
    assert_eq!(run(&["fail", "--lab", &story.name, "leaf1-spine0", "down"]).code, 0);
    assert!(run(&["list"]).out.contains("down: leaf1-spine0"));
    // This removes only the labs of this user.
    assert_eq!(run(&["down", "--all"]).code, 0);
    // This holds even while root has labs.
    let gone = run(&["list"]);
    assert_eq!((gone.out.as_str(), gone.err.as_str()), ("", "there is no lab\n"));

    // If the keeper is killed, the kernel removes everything.
    assert_eq!(run(&["up", "fabric.toml", "--name", &story.name]).code, 0);
    let keeper = fs::read_dir("/proc").unwrap().find_map(|entry| {
        let folder = entry.unwrap().path();
        let line = fs::read(folder.join("cmdline")).unwrap_or_default();
        let ours = line.starts_with(nobody.program.to_str().unwrap().as_bytes());
        ours.then(|| folder.file_name().unwrap().to_string_lossy().into_owned())
    });
    let keeper = keeper.expect("a process keeps the lab");
    assert!(Command::new("kill").args(["-KILL", &keeper]).status().unwrap().success());
    let since = Instant::now();
    while run(&["list"]).err != "there is no lab\n" {
        assert!(since.elapsed() < PATIENCE, "the lab outlives its keeper");
    }
}
