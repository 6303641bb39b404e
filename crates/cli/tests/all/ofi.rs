//! `pathweave ofi`: variables for a shell, and the provider's library, queried as by libfabric.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::common::{Done, Lab as Folder, done};

const LIBRARY: &str = "libpathweave-fi.so";

/// Returns the library, which is built beside the tests.
fn library() -> PathBuf {
    let mut folder = std::env::current_exe().unwrap();
    folder.pop();
    let found = [folder.join("libpathweave_fi.so"), folder.join("../libpathweave_fi.so")];
    found.into_iter().find(|path| path.is_file()).expect("the library is built with the tests")
}

/// Folder with `lib/libpathweave-fi.so`, a valid key and an invalid one.
struct Story(Folder);

impl Story {
    fn new() -> Story {
        use std::os::unix::fs::PermissionsExt;
        let folder = Folder::new()
            .file("cluster.key", "0123456789abcdef".repeat(4))
            .file("open.key", "0123456789abcdef".repeat(4));
        fs::set_permissions(folder.path("cluster.key"), fs::Permissions::from_mode(0o600)).unwrap();
        fs::set_permissions(folder.path("open.key"), fs::Permissions::from_mode(0o644)).unwrap();
        fs::create_dir(folder.path("lib")).unwrap();
        fs::copy(library(), folder.path("lib").join(LIBRARY)).unwrap();
        Story(folder)
    }

    fn command(&self, args: &[&str], variables: &[(&str, &str)]) -> Command {
        let mut command = self.0.command(&[&["ofi"], args].concat());
        for (name, _) in std::env::vars_os() {
            if ["PATHWEAVE_", "FI_"].iter().any(|ours| name.to_string_lossy().starts_with(ours)) {
                command.env_remove(name);
            }
        }
        command.envs(variables.iter().copied());
        command
    }

    fn run(&self, args: &[&str], variables: &[(&str, &str)]) -> Done {
        done(&self.command(args, variables).output().unwrap())
    }

    /// Checks that a command fails with these words on standard error and nothing on standard output.
    #[track_caller]
    fn fails(&self, args: &[&str], variables: &[(&str, &str)], words: &[&str]) {
        let done = self.run(args, variables);
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{args:?} {variables:?}: {}", done.err);
        for word in words {
            assert!(done.err.contains(word), "{word:?} is not in: {}", done.err);
        }
    }

    fn absolute(&self, name: &str) -> String {
        self.0.path(name).to_str().unwrap().to_owned()
    }
}

#[test]
fn a_shell_takes_the_variables() {
    let story = Story::new();
    let odd = story.0.path("it's a \"$HOME\" folder");
    fs::create_dir(&odd).unwrap();
    fs::copy(library(), odd.join(LIBRARY)).unwrap();
    let script = r#"out=$("$0" ofi env --provider "$1" --key cluster.key) && eval "$out" &&
        exec sh -c 'printf "%s\n" "$FI_PROVIDER_PATH" "$FI_PROVIDER" "$PATHWEAVE_KEY_FILE"'"#;
    let shell = |path: Option<&str>| {
        let mut command = Command::new("sh");
        command.args(["-c", script, env!("CARGO_BIN_EXE_pathweave")]).arg(&odd);
        command.current_dir(story.0.path(""));
        match path {
            Some(path) => command.env("FI_PROVIDER_PATH", path),
            None => command.env_remove("FI_PROVIDER_PATH"),
        };
        let done = done(&command.output().unwrap());
        assert_eq!((done.code, done.err.as_str()), (0, ""));
        done.out
    };
    let (folder, key) = (odd.to_str().unwrap(), story.absolute("cluster.key"));
    assert_eq!(shell(None), format!("{folder}\npathweave\n{key}\n"));
    assert_eq!(shell(Some("/other")), format!("{folder}:/other\npathweave\n{key}\n"));
    let fish =
        story.run(&["env", "--provider", "lib", "--shell", "fish"], &[("PATHWEAVE_PROTECTION", "insecure")]);
    let expected =
        format!("set -gx FI_PROVIDER_PATH '{}'\nset -gx FI_PROVIDER 'pathweave'\n", story.absolute("lib"));
    assert_eq!((fish.code, fish.out.as_str(), fish.err.as_str()), (0, expected.as_str(), ""));
}

#[test]
fn unsafe_shell_text_is_not_printed() {
    let story = Story::new();
    story.fails(&["env", "--provider", "."], &[], &["--provider", "there is no libpathweave-fi.so"]);
    story.fails(&["env", "--provider", "lib", "--key", "none"], &[], &["--key", "none"]);
    story.fails(&["env", "--provider", "lib", "--key", "open.key"], &[], &["--key", "open.key"]);
    story.fails(
        &["env", "--provider", "lib"],
        &[("PATHWEAVE_KEY_FILE", "open.key")],
        &["PATHWEAVE_KEY_FILE: ", "open.key"],
    );
    // Without a key the command succeeds, because the key may be set later.
    let done = story.run(&["env", "--provider", "lib"], &[]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(done.err.starts_with("note: there is no key") && !done.out.contains("KEY_FILE"), "{}", done.err);
}

/// The program and the library under one prefix, as `make install-provider` and a copy of the program leave them.
#[test]
fn the_library_is_found_from_where_the_program_is() {
    let story = Story::new();
    let program = story.0.path("bin/pathweave");
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    // Copied by another process: a file that this process has open for writing cannot be executed while a child of
    // another test inherits it.
    let copied =
        Command::new("cp").args([env!("CARGO_BIN_EXE_pathweave").as_ref(), program.as_os_str()]).status();
    assert!(copied.unwrap().success());
    let env = || {
        let mut command = Command::new(&program);
        command.args(["ofi", "env"]).env("PATHWEAVE_PROTECTION", "insecure").env_remove("FI_PROVIDER_PATH");
        done(&command.output().unwrap())
    };
    let installed = story.0.path("lib/libfabric");
    if !std::path::Path::new("/usr/local/lib/libfabric").join(LIBRARY).exists() {
        let none = env();
        assert_eq!((none.code, none.out.as_str()), (2, ""));
        for folder in [program.parent().unwrap(), &installed] {
            let folder = folder.canonicalize().unwrap_or(folder.to_owned());
            assert!(none.err.contains(folder.to_str().unwrap()), "{}", none.err);
        }
        assert!(none.err.contains("/usr/local/lib/libfabric") && none.err.contains("make install-provider"));
    }
    fs::create_dir(&installed).unwrap();
    fs::rename(story.0.path("lib").join(LIBRARY), installed.join(LIBRARY)).unwrap();
    let found = env();
    let line = format!("export FI_PROVIDER_PATH='{}'\n", installed.canonicalize().unwrap().display());
    assert!(found.code == 0 && found.out.starts_with(&line), "{}{}", found.out, found.err);
}

const OPEN: (&str, &str) = ("PATHWEAVE_PROTECTION", "insecure");
const LOOPBACK: (&str, &str) = ("PATHWEAVE_IFACE", "lo");

#[test]
fn an_offer_is_told_in_words_and_as_json() {
    let story = Story::new();
    let done = story.run(&["info", "--provider", "lib"], &[OPEN, LOOPBACK]);
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    for part in ["fabric 127.0.0.0/8, domain lo, address 127.0.0.1, any port", "TAGGED", "1024 B injected"] {
        assert!(done.out.contains(part), "{part:?} is not in: {}", done.out);
    }
    let key = story.absolute("cluster.key");
    let variables = [("PATHWEAVE_KEY_FILE", key.as_str()), LOOPBACK, ("FI_PROVIDER_PATH", "/none:lib")];
    let done = story.run(&["info", "--json"], &variables);
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    let value: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    let offer = &value["offers"][0];
    assert_eq!((&offer["fabric"], &offer["domain"]), (&"127.0.0.0/8".into(), &"lo".into()));
    assert_eq!((&offer["address"], &offer["inject_size"]), (&"127.0.0.1:0".into(), &1_024.into()));
    assert!(offer["caps"].as_array().unwrap().contains(&"FI_ATOMIC".into()), "{offer}");
}

#[test]
fn why_nothing_is_offered_is_said() {
    let story = Story::new();
    let info = ["info", "--provider", "lib"];
    story.fails(&info, &[], &["there is no key", "offers nothing here"]);
    story.fails(&info, &[OPEN, ("PATHWEAVE_IFACE", "ib0")], &["the name ib0 (PATHWEAVE_IFACE)"]);
    story.fails(&info, &[OPEN, ("PATHWEAVE_ADDRESS", "192.0.2.1")], &["the address 192.0.2.1"]);
    story.fails(&info, &[OPEN, ("PATHWEAVE_PATHS", "0")], &["PATHWEAVE_PATHS is \"0\"; allowed: 1 to 256"]);
    story.fails(&info, &[("PATHWEAVE_KEY_FILE", "open.key")], &["open.key"]);
    let allowed = ("FI_PROVIDER", "tcp,pathweave");
    assert_eq!(story.run(&info, &[OPEN, LOOPBACK, allowed]).code, 0);
    story.fails(&info, &[OPEN, LOOPBACK, ("FI_PROVIDER", "tcp")], &["FI_PROVIDER is \"tcp\""]);
}

#[test]
fn a_library_that_libfabric_would_pass_over_in_silence_is_named() {
    let story = Story::new();
    story.fails(
        &["info"],
        &[OPEN, ("FI_PROVIDER_PATH", "@/nowhere:.")],
        &["there is no libpathweave-fi.so in /nowhere, .,", "FI_PROVIDER_PATH"],
    );
    fs::create_dir(story.0.path("bad")).unwrap();
    fs::write(story.0.path("bad").join(LIBRARY), "no library").unwrap();
    story.fails(&["info", "--provider", "bad"], &[OPEN], &["cannot be loaded: ", LIBRARY]);
    if story.other_library("other") {
        story.fails(
            &["info", "--provider", "other"],
            &[OPEN],
            &["no library of this provider", "fi_prov_ini"],
        );
    }
}

impl Story {
    /// Builds a library unrelated to libfabric. Returns false without a C compiler.
    fn other_library(&self, folder: &str) -> bool {
        fs::create_dir(self.0.path(folder)).unwrap();
        fs::write(self.0.path("other.c"), "int other(void) { return 1; }\n").unwrap();
        let to = self.0.path(folder).join(LIBRARY);
        let mut command = Command::new("cc");
        command.args(["-shared", "-fPIC", "-o"]).arg(to).arg(self.0.path("other.c"));
        command.status().is_ok_and(|status| status.success())
    }
}
