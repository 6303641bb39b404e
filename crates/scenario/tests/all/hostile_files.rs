//! Malformed files: each format gives a short error that names the file, without reading or storing more than
//! necessary.

use std::fs;
use std::path::Path;

use pathweave_scenario::convert::{Conversion, ConvertError, convert, formats};
use pathweave_scenario::{Changes, Loaded};

/// Returns the result of converting a file of this format to a suitable format.
fn answer(folder: &Path, format: &str, input: &Path) -> String {
    let mut answers = Vec::new();
    for (to, name) in [("csv", "out.csv"), ("topology", "out.toml"), ("workload", "lines.toml")] {
        let how = Conversion { from: Some(format), to: Some(to), set: &[] };
        match convert(input, &folder.join(name), how) {
            Ok(_) => answers.push("converted".to_owned()),
            Err(why) => answers.push(match why {
                ConvertError::Scenario(found) => found.to_string(),
                ConvertError::Other(what) => what,
            }),
        }
    }
    // Conversions between incompatible formats are refused independently of the file.
    let other_ways =
        [", and csv a list of flows", ", and topology a topology", ", and workload lines of a workload"];
    let of_file = |text: &&String| !other_ways.iter().any(|other| text.contains(other));
    answers.iter().find(of_file).cloned().unwrap_or_else(|| answers.join("\n"))
}

#[test]
fn every_format_answers_shortly_and_names_the_file() {
    const MIB: usize = 1 << 20;
    let hostile: [(&str, Vec<u8>); 10] = [
        ("empty", Vec::new()),
        ("zeros", vec![0; 4 * MIB]),
        ("not UTF-8", vec![0xff; MIB]),
        ("one long word", vec![b'7'; MIB]),
        ("one long line", b"7 ".repeat(MIB / 2)),
        ("many empty lines", vec![b'\n'; MIB]),
        ("many small lines", b"x\n".repeat(MIB / 2)),
        ("brackets", vec![b'['; MIB]),
        ("negative numbers", b"-1 -1 -1 -1 -1\r\n-1 -1 -1 -1 -1\r\n".to_vec()),
        ("huge numbers", b"99999999999999999999 1 1\n1 99999999999999999999 1 1 1\n".to_vec()),
    ];
    let folder = tempfile::tempdir().unwrap();
    for format in formats().into_iter().filter(|format| format.is_read) {
        for (what, bytes) in &hostile {
            // Chakra traces are folders of binary files.
            let name = if format.name == "chakra" { "t.0.et" } else { "t.txt" };
            let input = folder.path().join(name);
            fs::write(&input, bytes).unwrap();
            let text = answer(folder.path(), format.name, &input);
            assert!(text != "converted", "{}: {what} was converted", format.name);
            assert!(text.len() < 2_000, "{}: {what}: an error of {} bytes", format.name, text.len());
            // An error in an empty scenario has no source location.
            let is_placed = format.name != "chakra" && !(format.name == "scenario" && what.contains("empty"));
            assert!(text.contains("t.txt") || !is_placed, "{}: {what}: {text}", format.name);
            if *what == "zeros" && format.name != "chakra" {
                assert!(text.contains("line 1 has a byte of value 0"), "{}: {text}", format.name);
            }
            if *what == "not UTF-8" && format.name != "chakra" {
                assert!(text.contains("not UTF-8"), "{}: {text}", format.name);
            }
            fs::remove_file(&input).unwrap();
        }
        if format.name != "chakra" {
            let folder_as_file = answer(folder.path(), format.name, folder.path());
            assert!(
                folder_as_file.contains("it is a folder; expected a file"),
                "{}: {folder_as_file}",
                format.name
            );
            let missing = answer(folder.path(), format.name, &folder.path().join("none.txt"));
            assert!(missing.contains("No such file"), "{}: {missing}", format.name);
        }
    }
}

/// Deep nesting must not use a stack frame for each level or time that grows with the square of the levels.
#[test]
fn documents_of_many_levels_are_refused() {
    const LEVELS: usize = 20_000;
    let dotted = vec!["a"; LEVELS].join(".");
    let texts = [
        format!("{dotted} = 1\n"),
        format!("[{dotted}]\nb = 1\n"),
        format!("[[{dotted}]]\nb = 1\n"),
        format!("a = {}{}\n", "[".repeat(LEVELS), "]".repeat(LEVELS)),
        format!("a = {}1{}\n", "{ b = ".repeat(LEVELS), " }".repeat(LEVELS)),
        format!("a = {}", "{ b = [".repeat(LEVELS)),
    ];
    for text in texts {
        let error = Loaded::parse(&text, "deep.toml", "", &Changes::default()).unwrap_err().to_string();
        assert!(error.contains("deep.toml:1:"), "{}", &error[..error.len().min(500)]);
        assert!(error.len() < 5_000, "an error of {} bytes", error.len());
    }
    let set = |text: String| Changes { set: vec![text], ..Changes::default() };
    for change in
        [format!("{dotted}=1"), format!("a={}", "[".repeat(LEVELS)), format!("a={}1", "{b=".repeat(LEVELS))]
    {
        let error = Loaded::parse("seed = 1\n", "s.toml", "", &set(change)).unwrap_err().to_string();
        assert!(error.len() < 10_000, "an error of {} bytes", error.len());
    }
}
