//! `pathweave lab exec` with applications: a lab for one command, hosts that launchers reach, faults at their times,
//! and complete removal in all cases. Tests MPI if it is installed.

#![allow(clippy::print_stderr)] // Skipped tests are reported.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::{Done, Lab as Folder, Nobody, done, labs_can_be_made, namespaces, root};

const STEP: Duration = Duration::from_millis(5);
const PATIENCE: Duration = Duration::from_secs(60);

/// Four hosts at two leaves, two spines, with rates low enough to be reached.
const FABRIC: &str = "\
[topology]
kind = \"leaf-spine\"
leaves = 2
spines = 2
hosts_per_leaf = 2
host_rate = \"1Gbps\"
spine_rate = \"100Mbps\"

[[workload]]
kind = \"permutation\"
size = \"100KB\"
";

/// Two of the four unequal spines are cut permanently half a second after the start. Routes follow 100 ms later.
const CUTS: &str = "
[switch]
reroute_after = \"100ms\"

[[fault]]
kind = \"switch-down\"
switch = \"spine1\"
at = \"500ms\"

[[fault]]
kind = \"switch-down\"
switch = \"spine3\"
at = \"500ms\"
";

/// Folder with `fabric.toml`, and a lab name that no other test uses. The lab is removed on drop.
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
        let unequal = root().join("scenarios/unequal-spines");
        let scenario = fs::read_to_string(unequal.with_extension("toml")).unwrap();
        let fabric = unequal.join("fabric.toml").canonicalize().unwrap();
        let scenario = scenario.replace("unequal-spines/fabric.toml", fabric.to_str().unwrap());
        let folder = Folder::new().file("fabric.toml", FABRIC).file("unequal.toml", &scenario);
        let folder = folder.file("cuts.toml", format!("{scenario}{CUTS}"));
        Some(Story { folder, name: format!("x{}-{test}", std::process::id()) })
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.folder.command(&[&["lab", "exec"], args].concat());
        // Tests that run as root may run MPI as root.
        for name in ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] {
            command.env(name, "1");
        }
        command
    }

    /// Runs a command in a lab of this file.
    fn exec(&self, file: &str, command: &[&str]) -> Done {
        let args = [&[file, "--name", &self.name, "--"], command].concat();
        done(&self.command(&args).output().unwrap())
    }

    #[track_caller]
    fn prints(&self, file: &str, command: &[&str]) -> String {
        let done = self.exec(file, command);
        assert_eq!(done.code, 0, "{command:?}: {}{}", done.out, done.err);
        assert_eq!(self.namespaces(), 0, "{command:?}");
        done.out
    }

    #[track_caller]
    fn refused(&self, args: &[&str], part: &str) {
        let done = done(&self.command(args).output().unwrap());
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{args:?}: {}", done.err);
        assert!(done.err.contains(part), "{part:?} is not in: {}", done.err);
    }

    fn namespaces(&self) -> usize {
        namespaces(&self.name)
    }

    /// Starts a script in a lab, and returns when it has created the file `ready`.
    fn started(&self, script: &str) -> Child {
        let args = ["fabric.toml", "--name", &self.name, "--", "sh", "-c", script];
        let child = self.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let since = Instant::now();
        while !self.folder.path("ready").exists() {
            assert!(since.elapsed() < PATIENCE, "the command does not start");
            sleep(STEP);
        }
        fs::remove_file(self.folder.path("ready")).unwrap();
        child
    }
}

impl Drop for Story {
    fn drop(&mut self) {
        if self.namespaces() > 0 {
            self.folder.run(&["lab", "down", &self.name]);
        }
    }
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

#[test]
fn a_command_has_a_lab_to_itself() {
    let Some(story) = Story::new("whole") else { return };
    let script = "hostname; cat /etc/hosts; stat -c %a $PATHWEAVE_KEY_FILE; echo $PATHWEAVE_KEY_FILE; \
        echo $PATHWEAVE_IFACE $PATHWEAVE_LINE_RATE [$FI_PROVIDER]; cat $HYDRA_HOST_FILE; pwd; exit 7";
    let done = story.exec("fabric.toml", &["sh", "-c", script]);
    assert_eq!(done.code, 7, "the command's own exit code: {}", done.err);
    let lines: Vec<&str> = done.out.lines().collect();
    let key = lines[7];
    let folder = story.folder.path("").display().to_string();
    let expected = [
        "host0",
        "127.0.0.1 localhost",
        "10.1.0.1 host0",
        "10.1.0.2 host1",
        "10.1.0.3 host2",
        "10.1.0.4 host3",
        "600",
        key,
        "p0 1Gbps []",
        "host0:1",
        "host1:1",
        "host2:1",
        "host3:1",
        folder.trim_end_matches('/'),
    ];
    assert_eq!(lines, expected);
    assert_eq!(story.namespaces(), 0);
    assert!(!Path::new(key).exists() && !Path::new(key).parent().unwrap().exists(), "{key}");
    let name = |done: Done| done.out;
    assert_eq!(name(story.exec("fabric.toml", &["sh", "-c", "kill -KILL $$"])), "");
    assert_eq!(story.exec("fabric.toml", &["sh", "-c", "kill -KILL $$"]).code, 137);
    let missing = story.exec("fabric.toml", &["no-such-program"]);
    assert_eq!(missing.code, 2);
    assert!(missing.err.contains("cannot run no-such-program: No such file"), "{}", missing.err);
    assert_eq!(story.namespaces(), 0);
}

#[test]
fn the_agent_leads_to_every_host() {
    let Some(story) = Story::new("agent") else { return };
    let script = "for host in host3 10.1.0.2 me@host1; do $HYDRA_LAUNCHER_EXEC -x -o BatchMode=yes $host \
        'echo $(hostname)' '$(cat /sys/class/net/p0/address)'; done; \
        $OMPI_MCA_plm_rsh_agent host2 exit 9; echo $?; $PRTE_MCA_plm_ssh_agent hosst2 true; echo $?; \
        $I_MPI_HYDRA_BOOTSTRAP_EXEC leaf0 true; echo $?; $HYDRA_LAUNCHER_EXEC host1; echo $?; \
        $HYDRA_LAUNCHER_EXEC host1 '$HYDRA_LAUNCHER_EXEC host2 hostname'";
    let done = story.exec("fabric.toml", &["sh", "-c", script]);
    assert_eq!(done.code, 0, "{}", done.err);
    let lines: Vec<&str> = done.out.lines().collect();
    let names: Vec<&str> = lines[..3].iter().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(names, ["host3", "host1", "host1"]);
    assert!(lines[0] != lines[1] && lines[1] == lines[2], "devices are the host's own: {}", done.out);
    assert_eq!(lines[3..], ["9", "2", "2", "2", "host2"]);
    for part in ["did you mean \"host", "leaf0 is a switch", "as for ssh: [options] HOST COMMAND"] {
        assert!(done.err.contains(part), "{part:?} is not in: {}", done.err);
    }
}

#[test]
fn variables_set_by_the_user_stay() {
    let Some(story) = Story::new("set") else { return };
    let folder = Folder::new().file("libpathweave-fi.so", "");
    let lib = folder.path("").display().to_string();
    let lib = lib.trim_end_matches('/');
    let script = "echo $FI_PROVIDER $FI_PROVIDER_PATH $PATHWEAVE_ADDRESS [$PATHWEAVE_IFACE] $HYDRA_LAUNCHER";
    let args = ["fabric.toml", "--name", &story.name, "--provider", lib, "--", "sh", "-c", script];
    let plain = done(&story.command(&args).output().unwrap());
    assert_eq!(plain.out, format!("pathweave {lib} [p0] ssh\n"), "{}", plain.err);
    let mut command = story.command(&args);
    command.env("FI_PROVIDER", "tcp").env("PATHWEAVE_ADDRESS", "10.1.0.1").env("HYDRA_LAUNCHER", "rsh");
    let own = done(&command.output().unwrap());
    assert_eq!(own.out, format!("tcp {lib} 10.1.0.1 [] rsh\n"), "{}", own.err);
}

#[test]
fn a_lab_that_is_up_serves_applications_and_stays() {
    let Some(story) = Story::new("up") else { return };
    let name = story.name.as_str();
    let up = story.folder.run(&["lab", "up", "fabric.toml", "--name", name]);
    assert_eq!(up.code, 0, "{}", up.err);
    let args = ["--lab", name, "--", "sh", "-c", "hostname; $HYDRA_LAUNCHER_EXEC host2 hostname; exit 4"];
    let used = done(&story.command(&args).output().unwrap());
    assert_eq!((used.code, used.out.as_str()), (4, "host0\nhost2\n"), "{}", used.err);
    assert_eq!(story.namespaces(), 8);
    // The program of a single host gets no settings for applications.
    let args = ["--lab", name, "host1", "--", "sh", "-c", "echo [$HYDRA_LAUNCHER_EXEC]"];
    assert_eq!(done(&story.command(&args).output().unwrap()).out, "[]\n");
    story.refused(&["fabric.toml", "--name", name, "--", "true"], "exists already: `pathweave lab down");
    assert_eq!(story.namespaces(), 8, "it is somebody else's");
    story.refused(
        &["--lab", name, "fabric.toml", "--", "true"],
        "host or switch of this lab is named \"fabric.toml\"",
    );
}

#[test]
fn runs_that_do_not_fit_are_refused() {
    let Some(story) = Story::new("wrong") else { return };
    let made = "is for a lab that is made: it needs a scenario or topology file, and before -- ";
    story.refused(
        &["host0", "--mtu", "1500", "--", "true"],
        &format!("--mtu {made}\"host0\" is a host's name"),
    );
    story.refused(&["--seed", "1", "--", "true"], &format!("--seed {made}nothing is"));
    story.refused(
        &["host0", "--provider", ".", "--", "true"],
        "--provider is for an application on all hosts",
    );
    story.refused(&["fabric.toml", "--provider", ".", "--", "true"], "there is no libpathweave-fi.so");
    story.refused(&["fabric.toml", "--lab", "x", "--name", "y", "--", "true"], "cannot be used with");
    story.refused(&["missing.toml", "--", "true"], "missing.toml");
    story.refused(&["fabric.toml"], "required arguments were not provided");
}

#[test]
fn a_signal_ends_the_command_and_removes_the_lab() {
    let Some(story) = Story::new("signal") else { return };
    // SIGINT is not used: background jobs of a shell inherit that it is ignored, and no shell can then catch it.
    let child = story.started("trap 'echo heard; exit 15' TERM; touch ready; while :; do sleep 0.05; done");
    signal(&child, "-TERM");
    let heard = done(&child.wait_with_output().unwrap());
    assert_eq!((heard.code, heard.out.as_str()), (15, "heard\n"), "{}", heard.err);
    assert_eq!(story.namespaces(), 0);
    let child = story.started("touch ready; exec sleep 1000");
    signal(&child, "-TERM");
    assert_eq!(done(&child.wait_with_output().unwrap()).code, 143);
    assert_eq!(story.namespaces(), 0);
}

#[test]
fn a_command_that_does_not_want_to_end_is_ended_with_its_lab() {
    let Some(story) = Story::new("stubborn") else { return };
    let child = story.started("trap '' TERM; touch ready; while :; do sleep 0.05; done");
    signal(&child, "-TERM");
    sleep(Duration::from_millis(500));
    signal(&child, "-TERM");
    let done = done(&child.wait_with_output().unwrap());
    assert_eq!(done.code, 143, "{}", done.err);
    assert!(
        done.err.contains("the command does not end") && done.err.contains("ended process"),
        "{}",
        done.err
    );
    assert_eq!(story.namespaces(), 0);
}

#[test]
fn faults_come_while_the_command_runs() {
    let Some(story) = Story::new("faults") else { return };
    let program = env!("CARGO_BIN_EXE_pathweave");
    let script = format!(
        "shown() {{ {program} lab show --lab {}; }}; shown | grep -c DOWN; until shown | grep -q DOWN; do sleep 0.05; \
         done; sleep 0.2; shown | grep DOWN | cut -d: -f1 | sort -u",
        story.name
    );
    let out = story.prints("cuts.toml", &["timeout", "30", "sh", "-c", &script]);
    let expected = "0\n  p0 to leaf0\n  p1 to leaf1\n  p3 to spine1\n  p5 to spine3\n";
    assert_eq!(out, expected);
    let early = story.exec("cuts.toml", &["true"]);
    assert!(early.err.contains("note: the command ended before "), "{}", early.err);
    assert!(early.err.contains(" changes to the network"), "{}", early.err);
}

/// The same without privileges, with complete removal.
#[test]
fn without_root_too() {
    let Some(story) = Story::new("nobody") else { return };
    // This test has its own user id, because workplaces belong to users and end with their last lab.
    let Some(nobody) = Nobody::new("without_root_too", "64321", FABRIC) else { return };
    let run = |args: &[&str]| nobody.lab(args);
    let script = "hostname; $HYDRA_LAUNCHER_EXEC host3 'hostname; $HYDRA_LAUNCHER_EXEC host1 hostname'; \
        echo $OMPI_ALLOW_RUN_AS_ROOT; stat -c %a $PATHWEAVE_KEY_FILE; exit 3";
    let used = run(&["exec", "fabric.toml", "--name", &story.name, "--", "sh", "-c", script]);
    if used.code == 2 && used.err.contains("allow user namespaces") {
        return eprintln!("\n*** SKIPPED: without_root_too: {} ***\n", used.err.trim());
    }
    assert_eq!((used.code, used.out.as_str()), (3, "host0\nhost3\nhost1\n1\n600\n"), "{}", used.err);
    assert_eq!(run(&["list"]).err, "there is no lab\n");
}

/// Test program compiled with an MPI, and the launcher of that MPI.
struct Mpi {
    launcher: &'static [&'static str],
    program: String,
}

impl Mpi {
    /// Returns the installed MPIs. Prints which are missing.
    fn all(story: &Story) -> Vec<Mpi> {
        let known: [(&str, &[&str]); 2] = [
            ("mpicc.openmpi", &["mpirun.openmpi", "--mca", "pml", "ob1", "--mca", "btl", "tcp,self"]),
            ("mpicc.mpich", &["mpirun.mpich"]),
        ];
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/collectives.c");
        let compiled = known.into_iter().filter_map(|(compiler, launcher)| {
            let program = story.folder.path(&format!("collectives.{compiler}"));
            let built = Command::new(compiler).arg("-O1").arg(&source).arg("-o").arg(&program).output();
            let Ok(built) = built else {
                eprintln!("\n*** SKIPPED: {}: {compiler} is missing ***\n", launcher[0]);
                return None;
            };
            assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
            Some(Mpi { launcher, program: program.display().to_string() })
        });
        compiled.collect()
    }

    fn command<'a>(&'a self, ranks: &'a str, turns: &'a str) -> Vec<&'a str> {
        [self.launcher, &["-n", ranks, &self.program, turns]].concat()
    }
}

#[test]
fn mpi_runs_over_four_unequal_spines_with_one_command() {
    let Some(story) = Story::new("mpi") else { return };
    for mpi in Mpi::all(&story) {
        for (ranks, hosts) in [("2", "host0 host1"), ("4", "host0 host1 host2 host3")] {
            let out = story.prints("unequal.toml", &mpi.command(ranks, "1"));
            assert_eq!(out, format!("{ranks} ranks, all bytes right, on {hosts}\n"), "{}", mpi.launcher[0]);
        }
        // More ranks than hosts: every host has two.
        let out = story.prints("unequal.toml", &mpi.command("8", "1"));
        assert!(out.starts_with("8 ranks, all bytes right, on "), "{out}");
        for host in ["host0", "host1", "host2", "host3"] {
            assert_eq!(out.matches(host).count(), 2, "{out}");
        }
    }
}

#[test]
fn mpi_survives_the_cut_of_two_spines_of_four() {
    let Some(story) = Story::new("cut") else { return };
    for mpi in Mpi::all(&story) {
        let done = story.exec("cuts.toml", &mpi.command("4", "12"));
        assert_eq!(
            (done.code, done.out.as_str()),
            (0, "4 ranks, all bytes right, on host0 host1 host2 host3\n"),
            "{}",
            done.err
        );
        assert!(!done.err.contains("the command ended before"), "it was over too soon: {}", done.err);
        assert_eq!(story.namespaces(), 0);
    }
}

#[test]
fn mpi_that_is_asked_to_stop_leaves_nothing() {
    let Some(story) = Story::new("stop") else { return };
    for mpi in Mpi::all(&story) {
        let args = [&["fabric.toml", "--name", &story.name, "--"], &mpi.command("4", "1000000")[..]].concat();
        let child = story.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        sleep(Duration::from_secs(3));
        signal(&child, "-TERM");
        let done = done(&child.wait_with_output().unwrap());
        assert_ne!(done.code, 0, "{}", done.err);
        assert_eq!(story.namespaces(), 0);
        let left = fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let line = fs::read(entry.ok()?.path().join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            line.contains(&mpi.program).then_some(line)
        });
        assert_eq!(left.collect::<Vec<_>>(), Vec::<String>::new());
    }
}
