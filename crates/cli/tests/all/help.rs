//! `docs/cli.md` contains the exact help of the program. The command to regenerate it is
//! `UPDATE_DOCS=1 cargo test -p pathweave-cli --test all help`.

use crate::common::{Lab, root};

const INTRODUCTION: &str = "\
# The `pathweave` program

The help of every command, as the program prints it. Exit codes are at the end of the first.

Results go to standard output, everything else to standard error. A result folder appears under its name only when
complete; an older one is replaced in one step. Ctrl-C ends a run early: what it has is written, marked partial, and
the exit code is 130; a second Ctrl-C gives the results up.
";

#[test]
fn the_document_is_the_help() {
    let lab = Lab::new();
    let mut text = INTRODUCTION.to_owned();
    let names = [
        "run",
        "compare",
        "check",
        "explain",
        "list",
        "show",
        "schema",
        "demo",
        "paper",
        "sweep",
        "plan",
        "scan-period",
        "nccl",
        "fit",
        "lab",
        "perf",
        "ping",
        "ofi",
        "man",
        "completions",
    ];
    let of_perf = ["server", "client"];
    let of_lab = ["up", "down", "run", "list", "show", "exec", "fail"];
    let of_ofi = ["env", "info"];
    let commands = std::iter::once(Vec::new())
        .chain(names.map(|name| vec![name]))
        .chain(of_lab.map(|name| vec!["lab", name]))
        .chain(of_perf.map(|name| vec!["perf", name]))
        .chain(of_ofi.map(|name| vec!["ofi", name]))
        .chain([vec!["nccl", "env"]]);
    for command in commands {
        let args: Vec<_> = command.iter().copied().chain(["-h"]).collect();
        // The width of the terminal must not matter.
        let output = lab.command(&args).env("COLUMNS", "100").output().unwrap();
        let help = String::from_utf8(output.stdout).unwrap();
        let title = ["pathweave"].iter().chain(&command).copied().collect::<Vec<_>>().join(" ");
        text.push_str(&format!("\n## `{title}`\n\n```text\n{}\n```\n", help.trim_end()));
    }
    let path = root().join("docs/cli.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == text, "docs/cli.md is out of date; UPDATE_DOCS=1 writes it anew");
}
