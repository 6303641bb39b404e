//! Any text as a sweep file must yield a plan or an error with a message.

use std::path::Path;

use pathweave_study::sweep::Plan;
use proptest::prelude::*;

const GOOD: &str = "\
seeds = 2
[scenario.topology]
kind = \"star\"
hosts = 4
[[scenario.workload]]
kind = \"permutation\"
size = \"10KB\"
[[list]]
name = \"one\"
set = { \"switch.buffer\" = \"8MB\" }
[[grid]]
key = \"scheme\"
values = [\"ecmp\", \"rps\"]
[latin-hypercube]
samples = 3
[[latin-hypercube.axis]]
key = \"workload[0].size\"
from = \"1.5KB\"
to = \"9.0KB\"
scale = \"log\"
";

/// Values with the wrong type or out of range, for most fields.
const VALUES: [&str; 12] =
    ["", "0", "-1", "1e400", "\"\"", "[]", "{}", "true", "[[1]]", "\"9us\"", "\"x\"", "99999999"];

fn answer(text: &str) {
    match Plan::parse(text, "any.toml", Path::new("")) {
        Ok(plan) => assert_eq!(plan.cells.len(), plan.runs_of.len()),
        Err(why) => assert!(!why.to_string().is_empty()),
    }
}

#[test]
fn what_is_changed_below_is_good() {
    let plan = Plan::parse(GOOD, "good.toml", Path::new("")).unwrap();
    assert_eq!((plan.cells.len(), plan.runs.len()), (6, 12));
}

/// Removes every line, and gives every field each wrong value.
#[test]
fn a_sweep_with_a_slip() {
    let lines: Vec<&str> = GOOD.lines().collect();
    for at in 0..lines.len() {
        let with = |line: String| {
            let mut changed: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
            changed[at] = line;
            answer(&changed.join("\n"));
        };
        with(String::new());
        let Some((key, _)) = lines[at].split_once('=') else { continue };
        for value in VALUES {
            with(format!("{key}= {value}"));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_text(text in "\\PC{0,200}") {
        answer(&text);
    }
}
