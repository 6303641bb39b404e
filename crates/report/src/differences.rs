//! Differences between compared schemes besides their policies: loss recovery, acknowledgements, number of paths. If
//! these differ, a comparison of the schemes compares them, too.

use pathweave_records::RunInfo;
use toml::{Table, Value};

use crate::grid::{Cell, Grid, Row};

/// Name of a scheme, and its settings, outermost first.
type Scheme = (String, Vec<(String, String)>);

/// Returns the settings in which the schemes of `runs` differ, except those of the policy. Settings of a congestion
/// control count only among schemes with the same one. `None` if there is only one scheme, or no difference.
pub(crate) fn of_schemes(runs: &[&RunInfo]) -> Option<Grid> {
    let mut schemes: Vec<Scheme> = Vec::new();
    for run in runs {
        for scheme in of_scenario(&run.scenario_toml) {
            if !schemes.iter().any(|known| known.0 == scheme.0) {
                schemes.push(scheme);
            }
        }
    }
    let mut keys: Vec<&str> = Vec::new();
    for (key, _) in schemes.iter().flat_map(|scheme| &scheme.1) {
        if is_shown(key) && !keys.contains(&key.as_str()) {
            keys.push(key);
        }
    }
    let differing = keys.into_iter().filter(|key| differs(&schemes, key));
    let rows: Vec<Row> = differing.map(|key| row(&schemes, key)).collect();
    let columns = schemes.iter().map(|scheme| scheme.0.clone()).collect();
    (!rows.is_empty()).then(|| Grid { title: "Besides the policy".to_owned(), columns, rows })
}

/// Returns the schemes of a complete scenario, in its order.
fn of_scenario(text: &str) -> Vec<Scheme> {
    let Ok(scenario) = text.parse::<Table>() else { return Vec::new() };
    let workloads = scenario.get("workload").and_then(Value::as_array).into_iter().flatten();
    let own = workloads.flat_map(|workload| [workload.get("scheme"), workload.get("between_sites")]);
    let used = [scenario.get("scheme")].into_iter().chain(own).flatten().filter_map(Value::as_table);
    used.filter_map(|scheme| {
        let mut settings = Vec::new();
        leaves("", scheme, &mut settings);
        Some((scheme.get("name")?.as_str()?.to_owned(), settings))
    })
    .collect()
}

fn leaves(within: &str, table: &Table, out: &mut Vec<(String, String)>) {
    for (key, value) in table {
        let name = if within.is_empty() { key.clone() } else { format!("{within}.{key}") };
        match value {
            Value::Table(table) => leaves(&name, table, out),
            Value::String(text) => out.push((name, text.clone())),
            other => out.push((name, other.to_string())),
        }
    }
}

/// Returns true for settings outside of the policy, which is the object of comparison. The congestion control inside
/// a policy counts as outside.
fn is_shown(key: &str) -> bool {
    match key.strip_prefix("policy.") {
        None => !["name", "base"].contains(&key),
        Some(of_policy) => of_policy.starts_with("cc.") && of_policy != "cc.kind",
    }
}

fn value<'a>(scheme: &'a Scheme, key: &str) -> Option<&'a str> {
    scheme.1.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
}

/// Returns the kind of the table that has the field. Fields of tables of different kinds are not comparable.
fn kind<'a>(scheme: &'a Scheme, key: &str) -> Option<&'a str> {
    let within = match key.strip_prefix("policy.cc.") {
        Some(_) => "policy.cc",
        None => key.split_once('.')?.0,
    };
    (key != format!("{within}.kind")).then(|| value(scheme, &format!("{within}.kind"))).flatten()
}

fn differs(schemes: &[Scheme], key: &str) -> bool {
    let two_differ = |(i, a): (usize, &Scheme)| {
        let mut others = schemes[i + 1..].iter();
        others.any(|b| kind(a, key) == kind(b, key) && value(a, key) != value(b, key))
    };
    schemes.iter().enumerate().any(two_differ)
}

fn row(schemes: &[Scheme], key: &str) -> Row {
    let text = |scheme| value(scheme, key).unwrap_or("-").to_owned();
    let cells = schemes.iter().map(|scheme| Cell { text: text(scheme), ..Cell::default() }).collect();
    Row { label: key.to_owned(), cells }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(scheme: &str) -> RunInfo {
        RunInfo { scenario_toml: scheme.to_owned(), ..RunInfo::default() }
    }

    fn rows(texts: &[&str]) -> Vec<(String, Vec<String>)> {
        let runs: Vec<RunInfo> = texts.iter().map(|text| run(text)).collect();
        let grid = of_schemes(&runs.iter().collect::<Vec<_>>());
        let text = |row: Row| (row.label, row.cells.into_iter().map(|cell| cell.text).collect());
        grid.map_or(Vec::new(), |grid| grid.rows.into_iter().map(text).collect())
    }

    const A: &str = "[scheme]\nname = 'a'\npaths = 16\nqueue_pairs = 1\n[scheme.recovery]\nkind = 'sr'\nwindow = 7\n\
                     [scheme.policy]\nkind = 'split'\n[scheme.policy.cc]\nkind = 'dcqcn'\npreset = 'hpcc'\n";

    #[test]
    fn only_what_differs_is_told() {
        let b = A.replace("'a'", "'b'").replace("16", "8").replace("hpcc", "astra").replace("split", "dlbf");
        let expected = [("paths", ["16", "8"]), ("policy.cc.preset", ["hpcc", "astra"])];
        let expected = expected.map(|(key, cells)| (key.to_owned(), cells.map(str::to_owned).to_vec()));
        assert_eq!(rows(&[A, &b]), expected);
        assert!(rows(&[A]).is_empty() && rows(&[A, &A.replace("'a'", "'b'")]).is_empty());
    }

    #[test]
    fn fields_of_another_kind_are_no_difference() {
        let go_back_n = A.replace("'a'", "'b'").replace("kind = 'sr'\nwindow = 7", "kind = 'gbn'");
        let swift = go_back_n.replace("kind = 'dcqcn'\npreset = 'hpcc'", "kind = 'swift'\nincrease = 1.0");
        let expected = vec![("recovery.kind".to_owned(), vec!["sr".to_owned(), "gbn".to_owned()])];
        assert_eq!(rows(&[A, &swift]), expected);
        // A setting that only one scheme has is a difference.
        let reports =
            format!("{}[scheme.reordering]\nkind = 'reported'\nwait = '9us'\n", A.replace("'a'", "'b'"));
        assert_eq!(
            rows(&[A, &reports]),
            [("reordering.kind".to_owned(), vec!["-".to_owned(), "reported".to_owned()])]
        );
    }

    #[test]
    fn schemes_of_workloads_count_once() {
        let mixed =
            format!("{A}[[workload]]\nkind = 'x'\nscheme = {{ name = 'b', paths = 4, queue_pairs = 1 }}\n");
        let found = rows(&[&mixed, &mixed]);
        assert_eq!(found[0], ("paths".to_owned(), vec!["16".to_owned(), "4".to_owned()]));
    }
}
