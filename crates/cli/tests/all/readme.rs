//! Commands in the documents work and print the documented output.
//!
//! Every `pathweave` command in a `sh` or `console` block of a document runs in a folder with the scenarios, one
//! after the other. `my.toml` is the last `toml` block before the command. In a `console` block, commands follow `$`,
//! and the lines after them are their output. The command to regenerate the output is:
//!
//! ```sh
//! UPDATE_DOCS=1 cargo test -p pathweave-cli --test all readme
//! ```
//!
//! `cat > FILE <<'END'` (or `>>`) and the lines up to `END` write a file, as for a reader who pastes them.
//!
//! A comment on the line before a block states exceptions: `<!-- exit 2 -->`, or `<!-- not run: why -->`.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{env, fs};

use crate::common::{Done, Lab, done, root};

/// Largest duration of a command in a document. Those here take seconds on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// Document: its path from the root of the repository, and its text.
struct Document {
    name: String,
    text: String,
}

/// Fenced block and its surroundings.
struct Block<'a> {
    /// Line of its first fence, from 0.
    fence: usize,
    language: &'a str,
    lines: &'a [&'a str],
    /// Comment before the block, without its marks.
    note: &'a str,
}

/// Command, and its output according to the document.
struct Command<'a> {
    text: Cow<'a, str>,
    output: Option<Vec<&'a str>>,
}

fn documents() -> Vec<Document> {
    let mut names: Vec<String> = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"]
        .map(String::from)
        .into_iter()
        .chain(pages().into_iter().map(|page| format!("docs/{page}")))
        .collect();
    names.sort();
    let read =
        |name: &String| fs::read_to_string(root().join(name)).unwrap_or_else(|why| panic!("{name}: {why}"));
    names.iter().map(|name| Document { name: name.clone(), text: read(name) }).collect()
}

/// Returns the names of the files in docs/.
fn pages() -> Vec<String> {
    let entries = fs::read_dir(root().join("docs")).expect("a folder docs");
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".md")).collect()
}

/// Returns the fenced blocks of a document.
fn blocks<'a>(lines: &'a [&'a str]) -> Vec<Block<'a>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let Some(language) = lines[at].strip_prefix("```") else {
            at += 1;
            continue;
        };
        let end = (at + 1..lines.len()).find(|&line| lines[line].starts_with("```"));
        let end = end.unwrap_or_else(|| panic!("the block of line {} has no end", at + 1));
        let before = at.checked_sub(1).map_or("", |line| lines[line]);
        let note = before.strip_prefix("<!-- ").and_then(|note| note.strip_suffix(" -->")).unwrap_or("");
        found.push(Block { fence: at, language, lines: &lines[at + 1..end], note });
        at = end + 1;
    }
    found
}

/// Returns the commands of a block, without trailing comments.
fn commands<'a>(block: &Block<'a>) -> Vec<Command<'a>> {
    let mut found: Vec<Command<'_>> = Vec::new();
    let mut lines = block.lines.iter().copied();
    while let Some(line) = lines.next() {
        let bare = |line: &'a str| line.split(" #").next().expect("the part before it").trim_end();
        match block.language {
            "sh" if line.starts_with("cat >") && line.ends_with("<<'END'") => {
                let rest: Vec<&str> = lines.by_ref().take_while(|line| *line != "END").collect();
                let text = format!("{line}\n{}\nEND", rest.join("\n")).into();
                found.push(Command { text, output: None });
            }
            "sh" if !line.is_empty() && !line.starts_with('#') => {
                found.push(Command { text: bare(line).into(), output: None });
            }
            "console" => match line.strip_prefix("$ ") {
                Some(command) => found.push(Command { text: bare(command).into(), output: Some(Vec::new()) }),
                None => {
                    let command = found.last_mut().expect("a console block begins with a command");
                    command.output.as_mut().expect("of a console").push(line);
                }
            },
            _ => {}
        }
    }
    found
}

/// Runs a line of shell in which `pathweave` is the program under test.
fn shell(lab: &Lab, line: &str) -> Done {
    let program = Path::new(env!("CARGO_BIN_EXE_pathweave"));
    run_shell(lab, line, program.parent())
}

/// Runs a line of shell. Programs in the folder `first` take precedence over others.
fn run_shell(lab: &Lab, line: &str, first: Option<&Path>) -> Done {
    let mut path: Vec<PathBuf> = first.into_iter().map(Path::to_path_buf).collect();
    path.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &format!("exec {line}")]).current_dir(lab.path("")).stdin(Stdio::null());
    command.env("PATH", env::join_paths(path).expect("a path of paths")).env("TERM", "dumb");
    command.env_remove("COLUMNS");
    let file = |name: &str| fs::File::create(lab.path(name)).expect("a file in a folder of ours");
    let mut child = command.stdout(file(".out")).stderr(file(".err")).spawn().expect("sh runs");
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            break status;
        }
        if start.elapsed() > PATIENCE {
            let _ = child.kill();
            panic!(
                "{line}: not done after {PATIENCE:?}; choose less work, or put <!-- not run: why --> above"
            );
        }
        sleep(Duration::from_millis(5));
    };
    let read = |name: &str| fs::read(lab.path(name)).expect("the file made above");
    done(&Output { status, stdout: read(".out"), stderr: read(".err") })
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap_or_else(|why| panic!("{}: {why}", from.display())) {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Runs the commands of a document. Returns the corrected text if the document states a wrong output. Panics if a
/// command does not end as documented.
fn play(document: &Document) -> Option<String> {
    let lab = Lab::new();
    copy_folder(&root().join("scenarios"), &lab.path("scenarios"));
    let lines: Vec<&str> = document.text.lines().collect();
    let mut right: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
    // Blocks are processed from last to first, so that line numbers before a change stay valid.
    let mut changes = Vec::new();
    for block in blocks(&lines) {
        if block.language == "toml" {
            fs::write(lab.path("my.toml"), block.lines.join("\n") + "\n").unwrap();
        }
        if block.note.starts_with("not run: ") {
            continue;
        }
        let expected = block.note.strip_prefix("exit ").map_or(0, |code| code.parse().expect("an exit code"));
        let mut text = String::new();
        for command in commands(&block) {
            let place = format!("{}, block of line {}: {}", document.name, block.fence + 1, command.text);
            if command.text.starts_with("cat >") {
                assert_eq!(shell(&lab, &command.text).code, 0, "{place}");
                continue;
            }
            if !command.text.starts_with("pathweave ") {
                assert!(command.output.is_none(), "{place}: only output of pathweave can be checked");
                continue;
            }
            assert!(!command.text.contains('|'), "{place}: a pipe hides the exit code");
            let done = shell(&lab, &command.text);
            assert_eq!(done.code, expected, "{place}\n{}{}", done.out, done.err);
            let printed = if expected == 0 { &done.out } else { &done.err };
            let _ = writeln!(text, "$ {}\n{}", command.text, printed.trim_end());
        }
        if block.language == "console" {
            changes.push((block.fence + 1..block.fence + 1 + block.lines.len(), text));
        }
    }
    for (place, text) in changes.into_iter().rev() {
        right.splice(place, text.lines().map(str::to_owned));
    }
    let right = right.join("\n") + "\n";
    (right != document.text).then_some(right)
}

#[test]
fn commands_do_what_the_documents_say() {
    for document in documents() {
        let Some(right) = play(&document) else { continue };
        if env::var_os("UPDATE_DOCS").is_some() {
            fs::write(root().join(&document.name), right).unwrap();
            continue;
        }
        let differs = document.text.lines().zip(right.lines()).position(|(is, should)| is != should);
        let line = differs.unwrap_or(document.text.lines().count().min(right.lines().count()));
        panic!(
            "{}:{}: a command prints something else:\n  documented: {}\n  printed:    {}\nUPDATE_DOCS=1 writes it anew",
            document.name,
            line + 1,
            document.text.lines().nth(line).unwrap_or(""),
            right.lines().nth(line).unwrap_or(""),
        );
    }
}

/// The tutorial, executed line by line in one shell and in the folder of a clone, as a reader pastes it. Only the
/// results of `make build` exist in advance.
#[test]
fn the_tutorial_can_be_pasted_line_by_line() {
    let text = fs::read_to_string(root().join("docs/tutorial.md")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let mut script = "set -e\nmake() { command make --dry-run \"$@\" > dry-run.txt; }\n".to_owned();
    for block in blocks(&lines) {
        assert!(!block.note.starts_with("not run: "), "the tutorial has no line that is not to be pasted");
        let expected = block.note.strip_prefix("exit ").unwrap_or("0");
        for command in commands(&block) {
            let line = &command.text;
            let _ = match line.lines().count() {
                1 => writeln!(
                    script,
                    "code=0\n{line} || code=$?\n[ $code = {expected} ] || {{ echo \"$code: {line}\"; exit 1; }}"
                ),
                _ => writeln!(script, "{line}"),
            };
        }
    }
    let lab = Lab::new().file("tutorial.sh", script);
    copy_folder(&root().join("scenarios"), &lab.path("scenarios"));
    for file in ["Makefile", "pyproject.toml"] {
        fs::copy(root().join(file), lab.path(file)).unwrap();
    }
    fs::create_dir_all(lab.path("target/release")).unwrap();
    fs::hard_link(env!("CARGO_BIN_EXE_pathweave"), lab.path("target/release/pathweave"))
        .or_else(|_| {
            fs::copy(env!("CARGO_BIN_EXE_pathweave"), lab.path("target/release/pathweave")).map(drop)
        })
        .unwrap();
    let done = run_shell(&lab, "bash tutorial.sh", None);
    assert_eq!(done.code, 0, "{}{}", done.out, done.err);
    for left in ["my-comparison", "my-broken-link", "my-timeout", "my-other-seed"] {
        assert!(lab.path("results").join(left).join("report.html").is_file(), "{left}");
    }
    times_of_the_tutorial(&lab, &text);
    let summary = lab.json("summary.json");
    assert_eq!(summary["run"]["name"], "my-cluster");
    assert!(fs::read_to_string(lab.path("dry-run.txt")).unwrap().contains("cargo build"));
}

/// Checks that the times in the tutorial are those of its runs, and that its statements about them are true.
fn times_of_the_tutorial(lab: &Lab, text: &str) {
    let rows = [
        ("without the fault", "my-comparison"),
        ("with the fault", "my-broken-link"),
        ("with the fault and the short timeout", "my-timeout"),
    ];
    let mut table = "| Time of the job | ecmp | rps | udmp |\n|---|---:|---:|---:|\n".to_owned();
    let mut times = Vec::new();
    for (row, folder) in rows {
        let summary = lab.json(&format!("results/{folder}/summary.json"));
        let of = |run: &serde_json::Value| run["jobs"]["completion_ns"]["max"].as_f64().unwrap() / 1e6;
        let of_row: Vec<f64> = summary["runs"].as_array().unwrap().iter().map(of).collect();
        let cells: String = of_row.iter().map(|time| format!(" {time:.3} ms |")).collect();
        table += &format!("| {row} |{cells}\n");
        times.push(of_row);
    }
    let share = |scheme: usize| (times[1][scheme] - times[2][scheme]) / (times[1][scheme] - times[0][scheme]);
    assert!(share(0) > 0.5, "the timeout is most of the delay of ecmp: {times:?}");
    assert!((1..3).all(|scheme| share(scheme) < 0.02), "others are no faster than before: {times:?}");
    assert!((0..3).all(|scheme| times[1][scheme] > 1.2 * times[0][scheme]), "each takes longer: {times:?}");
    assert!(times[1][0] > 2.0 * times[1][1].max(times[1][2]), "ecmp takes longest by far: {times:?}");
    let (before, rest) = text.split_once("| Time of the job |").expect("a table of times");
    let after = rest.split_once("\n\n").expect("the table ends").1;
    let now = format!("{before}{table}\n{after}");
    if now != text {
        let page = root().join("docs/tutorial.md");
        assert!(
            env::var_os("UPDATE_DOCS").is_some(),
            "docs/tutorial.md has other times: UPDATE_DOCS=1 writes\n{table}"
        );
        fs::write(page, now).unwrap();
    }
}

#[test]
fn make_targets_exist() {
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    let exists = |target: &str| makefile.lines().any(|line| line.starts_with(&format!("{target}:")));
    let mut missing = Vec::new();
    for document in documents() {
        let mut inside = false;
        for (number, line) in (1..).zip(document.text.lines()) {
            inside ^= line.starts_with("```");
            let typed = line.strip_prefix("$ ").unwrap_or(line).strip_prefix("make ").filter(|_| inside);
            let named = line.split("`make ").skip(1);
            for rest in typed.into_iter().chain(named) {
                let target: String =
                    rest.chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect();
                if !exists(&target) {
                    missing.push(format!("{}:{number}: make {target}", document.name));
                }
            }
        }
    }
    assert!(missing.is_empty(), "no such targets:\n{}", missing.join("\n"));
}

#[test]
fn links_lead_somewhere() {
    let mut broken = Vec::new();
    for document in documents() {
        let path = root().join(&document.name);
        for (number, line) in (1..).zip(document.text.lines()) {
            for rest in line.split("](").skip(1) {
                let target = rest.split([')', '#']).next().expect("the part before it");
                let outside = target.is_empty() || target.contains("://");
                if !outside && !path.parent().expect("a folder").join(target).exists() {
                    broken.push(format!("{}:{number}: {target}", document.name));
                }
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn the_index_lists_every_page() {
    let index: PathBuf = root().join("docs/README.md");
    let text = fs::read_to_string(index).unwrap();
    let missing: Vec<String> = pages()
        .into_iter()
        .filter(|page| page != "README.md" && !text.contains(&format!("]({page})")))
        .collect();
    assert!(missing.is_empty(), "docs/README.md does not list {missing:?}");
}

#[test]
fn the_worked_example_is_the_files_that_are_tested() {
    let page = root().join("docs/add-a-scheme.md");
    let mut text = fs::read_to_string(&page).unwrap();
    let mut differs = false;
    for (note, file) in [
        ("new file: crates/policy/src/picker/two_choices.rs", "worked_example/two_choices.rs"),
        ("the file crates/policy/tests/worked_example.rs", "worked_example.rs"),
    ] {
        let code = fs::read_to_string(root().join("crates/policy/tests").join(file)).unwrap();
        assert!(code.lines().count() < 100, "an example of 100 lines is not one");
        let start = format!("<!-- {note} -->\n```rust\n");
        let (before, rest) = text.split_once(&start).unwrap_or_else(|| panic!("no block of {note}"));
        let (is, after) = rest.split_once("```\n").expect("the block ends");
        differs |= is != code;
        text = format!("{before}{start}{code}```\n{after}");
    }
    if differs {
        assert!(
            env::var_os("UPDATE_DOCS").is_some(),
            "docs/add-a-scheme.md has other code: UPDATE_DOCS=1 copies it"
        );
        fs::write(page, text).unwrap();
    }
}

/// Pages for readers who know nothing of the project: short, and each ends in an answer that a command printed.
#[test]
fn pages_for_newcomers_are_short_and_end_in_an_answer() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let all: Vec<String> = pages().into_iter().filter(|page| page.starts_with("for-")).collect();
    assert_eq!(all.len(), 4, "{all:?}");
    for page in all {
        assert!(readme.contains(&format!("](docs/{page})")), "README.md does not lead to {page}");
        let text = fs::read_to_string(root().join("docs").join(&page)).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let blocks = blocks(&lines);
        let answer = blocks.last().expect("a block");
        let printed = commands(answer).pop().and_then(|command| command.output).unwrap_or_default();
        assert_eq!((answer.language, answer.note), ("console", "output: written by a test"), "{page}");
        assert!(printed.len() > 3, "{page} ends in an answer");
        assert!(lines.len() - (answer.fence + answer.lines.len()) <= 4, "{page}: nothing follows the answer");
        let words = text.split_whitespace().count() - printed.join(" ").split_whitespace().count();
        assert!(words <= 400, "{page} has {words} words");
    }
}
