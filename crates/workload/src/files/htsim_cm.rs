//! Connection matrices of htsim, `.cm`: the numbers of nodes, connections, triggers and failures, and then
//! one of them per line.

use std::collections::BTreeMap;

use pathweave_units::{Time, closest_name, suggestion};

use super::{FlowDependency, FlowFile, FlowRecord, HostCount};
use crate::error::FileError;
use crate::graph::Moment;

/// Largest number of (waiting flow, predecessor) pairs. Each flow that waits for a barrier lists all its
/// predecessors.
const MOST_WAITS: u64 = 1 << 22;

/// Largest number of words in a line.
const MOST_WORDS: usize = 4096;

/// Valid begins of a line.
const LINES: &str = "Nodes, Connections, Triggers, Failures, SRC->DST, trigger or failure";
/// Keys of a flow.
const FLOW_KEYS: [&str; 9] =
    ["id", "start", "trigger", "size", "send_done_trigger", "recv_done_trigger", "prio", "msg", "addon"];

/// Unit of starts. The two programs called htsim read starts in different units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HtsimDialect {
    /// uet-htsim: whole microseconds.
    Uet,
    /// csg-htsim: picoseconds.
    Csg,
}

/// Latest start from which a file is taken to be of csg-htsim: a second if read as microseconds, a
/// microsecond if read as picoseconds.
const TOO_LATE_FOR_US: u64 = 1_000_000;

impl HtsimDialect {
    /// Returns the picoseconds in a unit of starts.
    pub(crate) const fn start_unit_ps(self) -> u64 {
        match self {
            HtsimDialect::Uet => 1_000_000,
            HtsimDialect::Csg => 1,
        }
    }
    /// Returns the comment at the head of a file that names the unit.
    pub(crate) const fn comment(self) -> &'static str {
        match self {
            HtsimDialect::Uet => "# start in microseconds (uet-htsim)",
            HtsimDialect::Csg => "# start in picoseconds (csg-htsim)",
        }
    }
    const fn format(self) -> &'static str {
        match self {
            HtsimDialect::Uet => "uet-htsim",
            HtsimDialect::Csg => "csg-htsim",
        }
    }
    const fn unit(self) -> &'static str {
        match self {
            HtsimDialect::Uet => "microseconds",
            HtsimDialect::Csg => "picoseconds",
        }
    }
    const fn other(self) -> Self {
        match self {
            HtsimDialect::Uet => HtsimDialect::Csg,
            HtsimDialect::Csg => HtsimDialect::Uet,
        }
    }

    /// Detects the dialect and returns it with the reason. A comment of pathweave decides, otherwise the
    /// latest start.
    fn detect(text: &str, latest: u64) -> (Self, &'static str) {
        let named = [HtsimDialect::Uet, HtsimDialect::Csg]
            .into_iter()
            .find(|dialect| text.lines().any(|line| line.trim() == dialect.comment()));
        match named {
            Some(dialect) => (dialect, "according to a comment"),
            None if latest >= TOO_LATE_FOR_US => {
                (HtsimDialect::Csg, "as the latest would be a second or more")
            }
            None => (HtsimDialect::Uet, "as all would be within a microsecond"),
        }
    }
}

/// Rule by which a trigger starts the flows that wait for it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TriggerKind {
    /// The first event starts all flows.
    OneShot,
    /// Each event starts one more flow, in the order of the file.
    MultiShot,
    /// This many events start all flows.
    Barrier(u64),
}

/// A declared trigger.
struct Trigger {
    line: u64,
    fires: TriggerKind,
}

/// A flow as written in the file.
struct Flow {
    record: FlowRecord,
    waits_for: Option<u64>,
    /// Triggers that this flow fires, each with the moment of the flow that does so.
    fires: Vec<(u64, Moment)>,
    /// True if the file has attributes of the flow that are not used.
    has_more: bool,
}

/// Parses a connection matrix.
///
/// A flow that waits for a trigger begins when another flow fires it: `send_done_trigger` fires once the
/// sender has the last acknowledgement, `recv_done_trigger` once the receiver has all bytes. Triggers start
/// flows as in htsim. A oneshot starts all flows, a multishot starts one flow for each event in the order of
/// the file, and a barrier starts all flows at the last event.
///
/// Messages (`msg`) of a flow share its connection. Failures, priorities and `addon` are omitted, with a
/// note. Without a dialect, the unit of starts is detected, with a note: microseconds, unless the latest
/// start would then be a second or later.
///
/// # Errors
///
/// Returns an error for input that makes htsim abort (a oneshot fired twice, a barrier fired more often than
/// its count), and for flows that would wait forever.
pub fn parse_htsim_cm(text: &str, file: &str, dialect: Option<HtsimDialect>) -> Result<FlowFile, FileError> {
    let mut announced: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    let mut flows: Vec<Flow> = Vec::new();
    let mut triggers: BTreeMap<u64, Trigger> = BTreeMap::new();
    let mut failures = 0u64;
    for (line, content) in (1u64..).zip(text.lines()) {
        let words: Vec<&str> = content.split_whitespace().take(MOST_WORDS + 1).collect();
        let at = |what: String| FileError::at(file, line, what);
        if words.len() > MOST_WORDS && !words[0].starts_with('#') {
            return Err(at(format!("more than {MOST_WORDS} words")));
        }
        match words[..] {
            [] => {}
            [first, ..] if first.starts_with('#') => {}
            [name @ ("Nodes" | "Connections" | "Triggers" | "Failures"), count] => {
                let count = number(name, count).map_err(at)?;
                if let Some((first, _)) = announced.insert(name, (line, count)) {
                    return Err(at(format!("{name} = {count}: line {first} has it already")));
                }
            }
            ["trigger", ..] => {
                let (id, fires) = parse_trigger(&words[1..]).map_err(at)?;
                if let Some(first) = triggers.insert(id, Trigger { line, fires }) {
                    let what = format!(
                        "trigger id = {id}: the trigger of line {} has it already; ids must differ",
                        first.line
                    );
                    return Err(at(what));
                }
            }
            ["failure", ..] => failures += 1,
            [pair, ..] if pair.contains("->") => flows.push(parse_flow(line, &words).map_err(at)?),
            [other, ..] => {
                return Err(at(format!("\"{}\": expected a line that begins with {LINES}", shown(other))));
            }
        }
    }
    let Some(&(line, nodes)) = announced.get("Nodes") else {
        return Err(FileError::whole(file, "a line \"Nodes N\" is missing"));
    };
    let counts =
        [("Connections", flows.len() as u64), ("Triggers", triggers.len() as u64), ("Failures", failures)];
    for (name, found) in counts {
        match announced.get(name) {
            Some(&(line, count)) if count != found => {
                return Err(FileError::at(file, line, format!("{name} = {count}: there are {found}")));
            }
            None if name == "Connections" => {
                return Err(FileError::whole(file, "a line \"Connections N\" is missing"));
            }
            _ => {}
        }
    }
    for Flow { record, .. } in &flows {
        for (field, id) in [("src", record.src), ("dst", record.dst)] {
            if id >= nodes {
                let what = format!("{field} = {id}: nodes are below {nodes}");
                return Err(FileError::at(file, record.line, what));
            }
        }
    }
    let mut unused = Vec::new();
    if failures > 0 {
        unused.push(format!(
            "{file}: {failures} failures are not taken over; write them as faults of the scenario"
        ));
    }
    let with_more = flows.iter().filter(|flow| flow.has_more).count();
    if with_more > 0 {
        unused.push(format!("{file}: prio and addon of {with_more} flows are not used"));
    }
    let notes = scale_starts(&mut flows, text, file, dialect)?;
    name_all(&mut flows);
    let hosts = Some(HostCount { field: "Nodes", line: Some(line), count: nodes });
    Ok(FlowFile { flows: resolve(flows, &triggers, file)?, hosts, notes, unused })
}

fn shown(word: &str) -> String {
    word.chars().take(40).collect()
}

fn number(name: &str, value: &str) -> Result<u64, String> {
    value.parse().map_err(|_| format!("{name} = {}: expected a whole number at or above 0", shown(value)))
}

/// Parses an identifier. htsim takes 0 as no identifier.
fn identifier(name: &str, value: &str) -> Result<u64, String> {
    match number(name, value)? {
        0 => Err(format!("{name} = 0: expected 1 or more")),
        id => Ok(id),
    }
}

/// Parses a start in the unit of the file. htsim reads a decimal number.
fn start(value: &str) -> Result<u64, String> {
    let (whole, fraction) = value.split_once('.').unwrap_or((value, ""));
    match whole.parse() {
        Ok(units) if fraction.bytes().all(|digit| digit == b'0') => Ok(units),
        _ => Err(format!("start = {}: expected a whole number at or above 0", shown(value))),
    }
}

/// Converts starts from the unit of the file to picoseconds. Returns a note if the unit had to be detected.
fn scale_starts(
    flows: &mut [Flow],
    text: &str,
    file: &str,
    dialect: Option<HtsimDialect>,
) -> Result<Vec<String>, FileError> {
    let latest = flows.iter().map(|flow| flow.record.start.as_ps()).max().unwrap_or(0);
    let (told, why) = HtsimDialect::detect(text, latest);
    let dialect_used = dialect.unwrap_or(told);
    for Flow { record, .. } in flows {
        let ps = record.start.as_ps().checked_mul(dialect_used.start_unit_ps()).ok_or_else(|| {
            let what = format!(
                "start = {}: {} are at most {}",
                record.start.as_ps(),
                dialect_used.unit(),
                u64::MAX / dialect_used.start_unit_ps()
            );
            FileError::at(file, record.line, what)
        })?;
        record.start = Time::from_ps(ps);
    }
    if dialect.is_some() || latest == 0 {
        return Ok(Vec::new());
    }
    let other = dialect_used.other();
    Ok(vec![format!(
        "{file}: starts are read as {} ({}), {why}; format = \"{}\" reads {}",
        dialect_used.unit(),
        dialect_used.format(),
        other.format(),
        other.unit()
    )])
}

fn parse_trigger(words: &[&str]) -> Result<(u64, TriggerKind), String> {
    const EXPECTED: &str = "expected \"trigger id T oneshot\", \"... multishot\" or \"... barrier count K\"";
    let (mut id, mut kind, mut count) = (None, None, None);
    let mut words = words.iter().copied().peekable();
    while let Some(word) = words.next() {
        let taken = match word {
            "id" => id.replace(identifier("trigger id", words.next().unwrap_or_default())?).is_some(),
            "count" => count.replace(number("count", words.next().unwrap_or_default())?).is_some(),
            "oneshot" | "multishot" | "barrier" => {
                // The count may follow directly.
                if word == "barrier"
                    && let Some(given) = words.next_if(|next| next.bytes().all(|b| b.is_ascii_digit()))
                {
                    count = Some(number("count", given)?);
                }
                kind.replace(word).is_some()
            }
            other => return Err(format!("\"{}\": {EXPECTED}", shown(other))),
        };
        if taken {
            return Err(format!("\"{word}\" occurs twice: {EXPECTED}"));
        }
    }
    let fires = match (kind, count) {
        (Some("oneshot"), None) => TriggerKind::OneShot,
        (Some("multishot"), None) => TriggerKind::MultiShot,
        (Some("barrier"), Some(count)) => TriggerKind::Barrier(count),
        _ => return Err(EXPECTED.to_owned()),
    };
    Ok((id.ok_or(EXPECTED)?, fires))
}

fn parse_flow(line: u64, words: &[&str]) -> Result<Flow, String> {
    let (src, dst) = words[0].split_once("->").ok_or_else(|| "expected SRC->DST".to_owned())?;
    let record =
        FlowRecord { line, src: number("src", src)?, dst: number("dst", dst)?, ..FlowRecord::default() };
    let mut flow = Flow { record, waits_for: None, fires: Vec::new(), has_more: false };
    let (mut begins, mut size) = (None, None);
    let mut seen: Vec<&str> = Vec::new();
    let (mut id, mut is_message) = (None, false);
    let mut words = words[1..].iter().copied().peekable();
    while let Some(key) = words.next() {
        if !FLOW_KEYS.contains(&key) {
            let hint = suggestion(closest_name(key, FLOW_KEYS));
            return Err(format!("\"{}\": expected one of {}{hint}", shown(key), FLOW_KEYS.join(", ")));
        }
        if seen.contains(&key) {
            return Err(format!("{key} is given twice"));
        }
        seen.push(key);
        if key == "addon" {
            flow.has_more = true;
            continue;
        }
        // This is a message of the flow with this id. Its number is optional.
        if key == "msg" {
            is_message = true;
            if let Some(value) = words.next_if(|next| !FLOW_KEYS.contains(next)) {
                identifier(key, value)?;
            }
            continue;
        }
        let value = words.next().ok_or_else(|| format!("{key}: its value is missing"))?;
        match key {
            "id" => id = Some(identifier(key, value)?),
            "start" => begins = Some(start(value)?),
            "size" if value == "0" => {
                let last = "write a size that lasts beyond run.until";
                return Err(format!("size = 0: htsim sends without an end; flows here have one: {last}"));
            }
            "size" => size = Some(number(key, value)?),
            "trigger" => flow.waits_for = Some(identifier(key, value)?),
            "send_done_trigger" => flow.fires.push((identifier(key, value)?, Moment::Completion)),
            "recv_done_trigger" => flow.fires.push((identifier(key, value)?, Moment::Delivery)),
            _ => {
                number(key, value)?;
                flow.has_more = true;
            }
        }
    }
    if begins.is_some() == flow.waits_for.is_some() {
        return Err("expected start or trigger, one of them".to_owned());
    }
    if is_message {
        let flow_id = id.ok_or("msg is of a flow with an id; id is missing")?;
        let connection = u32::try_from(flow_id)
            .map_err(|_| format!("id = {flow_id}: of messages expected at most {}", u32::MAX))?;
        flow.record.connection = Some(connection);
    } else {
        flow.record.id = id.map(|id| id.to_string());
    }
    flow.record.start = Time::from_ps(begins.unwrap_or_default());
    flow.record.size_bytes = size.ok_or_else(|| "size is missing".to_owned())?;
    Ok(flow)
}

/// Gives identifiers to flows that fire triggers, because other flows refer to them. A flow without one gets
/// a number above all given ones.
fn name_all(flows: &mut [Flow]) {
    let given = flows.iter().filter_map(|flow| flow.record.id.as_ref()?.parse::<u64>().ok());
    let mut last = given.max().unwrap_or(0);
    for flow in flows.iter_mut().filter(|flow| !flow.fires.is_empty() && flow.record.id.is_none()) {
        last = last.saturating_add(1);
        flow.record.id = Some(last.to_string());
    }
}

/// Converts triggers to dependencies between flows.
fn resolve(
    flows: Vec<Flow>,
    triggers: &BTreeMap<u64, Trigger>,
    file: &str,
) -> Result<Vec<FlowRecord>, FileError> {
    let mut sources: BTreeMap<u64, Vec<FlowDependency>> = BTreeMap::new();
    let mut targets: BTreeMap<u64, u64> = BTreeMap::new();
    for Flow { record, waits_for, fires: sets_off, .. } in &flows {
        for trigger in sets_off.iter().map(|(trigger, _)| trigger).chain(waits_for) {
            if !triggers.contains_key(trigger) {
                let hint = match triggers.len() {
                    0 => "none is declared".to_owned(),
                    n => format!(
                        "{n} are declared, for instance {}",
                        triggers.keys().next().expect("there are")
                    ),
                };
                let what = format!("trigger = {trigger}: none has this id; {hint}");
                return Err(FileError::at(file, record.line, what));
            }
        }
        for &(trigger, moment) in sets_off {
            let id = record.id.as_deref().unwrap_or_default();
            sources.entry(trigger).or_default().push(FlowDependency { moment, ..FlowDependency::from(id) });
        }
        if let Some(trigger) = waits_for {
            *targets.entry(*trigger).or_default() += 1;
        }
    }
    let mut waits = 0;
    for (id, trigger) in triggers {
        let Some(&waiting) = targets.get(id) else { continue };
        let set_off = sources.get(id).map_or(0, Vec::len) as u64;
        waits += set_off * waiting;
        let what = match trigger.fires {
            _ if waits > MOST_WAITS => {
                format!(
                    "{waiting} flows wait for {set_off}; up to here flows wait for others in {waits} ways, at most \
                     {MOST_WAITS} are allowed"
                )
            }
            _ if set_off == 0 => format!("no flow sets it off, so that {waiting} never begin"),
            TriggerKind::OneShot if set_off > 1 => {
                format!("{set_off} flows set it off, and a oneshot fires once; expected multishot or barrier")
            }
            TriggerKind::MultiShot if set_off < waiting => {
                format!(
                    "{set_off} flows set it off and each starts one, so that of {waiting} some never begin"
                )
            }
            TriggerKind::Barrier(count) if count != set_off => {
                format!("count = {count}: {set_off} flows set it off; expected as many")
            }
            _ => continue,
        };
        return Err(FileError::at(file, trigger.line, format!("trigger {id}: {what}")));
    }
    // Number of flows that each multishot trigger has started.
    let mut shots: BTreeMap<u64, u32> = BTreeMap::new();
    let after = |flow: Flow| {
        let mut record = flow.record;
        if let Some(trigger) = flow.waits_for {
            record.after.clone_from(&sources[&trigger]);
            if triggers[&trigger].fires == TriggerKind::MultiShot {
                let shot = shots.entry(trigger).or_default();
                *shot += 1;
                record.needs = Some(*shot).filter(|&needs| (needs as usize) < record.after.len());
            }
        }
        record
    };
    Ok(flows.into_iter().map(after).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn flows_and_a_barrier() {
        let text = "Nodes 4\nConnections 3\nTriggers 1\n# two flows, then one\n0->1 id 1 start 0 size 2000000 recv_done_trigger 7\n\
                    2->3 id 2 start 5000 size 10 send_done_trigger 7 prio 2\n1->0 id 3 trigger 7 size 30\n\
                    trigger id 7 barrier count 2\n";
        let file = parse_htsim_cm(text, "x.cm", Some(HtsimDialect::Csg)).unwrap();
        assert_eq!(file.flows.len(), 3);
        let of =
            |i: usize| (file.flows[i].src, file.flows[i].dst, file.flows[i].size_bytes, file.flows[i].start);
        assert_eq!(of(0), (0, 1, 2_000_000, Time::ZERO));
        assert_eq!(of(1), (2, 3, 10, Time::from_ns(5)));
        let sent = FlowDependency { moment: Moment::Completion, ..FlowDependency::from("2") };
        assert_eq!(file.flows[2].after, [FlowDependency::from("1"), sent]);
        assert_eq!(file.hosts, Some(HostCount { field: "Nodes", line: Some(1), count: 4 }));
        assert_eq!(file.unused, ["x.cm: prio and addon of 1 flows are not used"]);
    }

    /// Starts of 2 to 16 us are from a file of uet-htsim (incast/gen_random_incast_8192n_8c_16us_1Ms.cm); the
    /// others are from one of csg-htsim.
    #[test]
    fn starts_are_microseconds_or_picoseconds() {
        let of = |starts: [u64; 2], head: &str, dialect| {
            let [a, b] = starts;
            let text =
                format!("{head}Nodes 4\nConnections 2\n0->1 start {a} size 5\n1->2 start {b} size 5\n");
            let file = parse_htsim_cm(&text, "x.cm", dialect)?;
            Ok::<_, FileError>((file.flows[1].start, file.notes))
        };
        let uet = of([2, 16], "", None).unwrap();
        assert_eq!(uet.0, Time::from_us(16));
        assert_eq!(
            uet.1,
            [
                "x.cm: starts are read as microseconds (uet-htsim), as all would be within a microsecond; format = \"csg-htsim\" reads picoseconds"
            ]
        );
        let csg = of([0, 16_000_000], "", None).unwrap();
        assert_eq!(csg.0, Time::from_us(16));
        assert!(
            csg.1[0].starts_with("x.cm: starts are read as picoseconds (csg-htsim), as the latest would be")
        );
        // The unit is given as an argument or by a comment, so nothing is detected.
        assert_eq!(of([0, 16], "", Some(HtsimDialect::Csg)).unwrap(), (Time::from_ps(16), vec![]));
        assert_eq!(
            of([0, 9_000_000], "", Some(HtsimDialect::Uet)).unwrap(),
            (Time::from_us(9_000_000), vec![])
        );
        let said = of([0, 16], "# start in picoseconds (csg-htsim)\n", None).unwrap();
        assert_eq!((said.0, said.1.len()), (Time::from_ps(16), 1));
        // All starts are 0, so the unit does not matter.
        assert_eq!(of([0, 0], "", None).unwrap(), (Time::ZERO, vec![]));
        let far = of([0, u64::MAX], "", Some(HtsimDialect::Uet)).unwrap_err().to_string();
        assert_eq!(far, "x.cm:4: start = 18446744073709551615: microseconds are at most 18446744073709");
    }

    #[test]
    fn errors_name_line_field_and_what_is_allowed() {
        let error = |text: &str| parse_htsim_cm(text, "x.cm", None).unwrap_err().to_string();
        let body = |lines: &str| error(&format!("Nodes 4\nConnections 2\n{lines}\n"));
        assert_eq!(error(""), "x.cm: a line \"Nodes N\" is missing");
        assert_eq!(error("Nodes 4\n"), "x.cm: a line \"Connections N\" is missing");
        assert_eq!(body("0->1 start 0 size 5"), "x.cm:2: Connections = 2: there are 1");
        assert_eq!(body("0->1 start 0 size 5\n0->4 start 0 size 5"), "x.cm:4: dst = 4: nodes are below 4");
        assert_eq!(body("0->1 start 0"), "x.cm:3: size is missing");
        assert_eq!(body("0->1 start 0 size -5"), "x.cm:3: size = -5: expected a whole number at or above 0");
        assert_eq!(body(&format!("0->1{}", " id 1".repeat(1 << 20))), "x.cm:3: more than 4096 words");
        assert_eq!(body("0->1 size 5"), "x.cm:3: expected start or trigger, one of them");
        assert!(
            body("0->1 start 0 sise 5")
                .starts_with("x.cm:3: \"sise\": expected one of id, start, trigger, size")
        );
        assert!(
            body("Conections 4")
                .starts_with("x.cm:3: \"Conections\": expected a line that begins with Nodes")
        );
        assert_eq!(
            body("0->1 start 0 size 5\n1->2 trigger 3 size 5"),
            "x.cm:4: trigger = 3: none has this id; none is declared"
        );
        let two = "0->1 start 0 size 5 recv_done_trigger 3\n1->2 trigger 3 size 5\n";
        assert_eq!(
            body(&format!("{two}trigger id 3 barrier count 2")),
            "x.cm:5: trigger 3: count = 2: 1 flows set it off; expected as many"
        );
        let both = "0->1 start 0 size 5 recv_done_trigger 3\n1->2 start 0 size 5 recv_done_trigger 3\n";
        let text = format!("Nodes 4\nConnections 3\n{both}2->3 trigger 3 size 5\ntrigger id 3 oneshot\n");
        let multishot = text.replace("Connections 3", "Connections 4").replace("oneshot", "multishot");
        let three =
            multishot.replace("2->3 trigger", "2->1 trigger 3 size 5\n2->0 trigger 3 size 5\n2->3 trigger");
        assert_eq!(
            error(&three.replace("Connections 4", "Connections 5")),
            "x.cm:8: trigger 3: 2 flows set it off and each starts one, so that of 3 some never begin"
        );
        assert_eq!(
            error(&text),
            "x.cm:6: trigger 3: 2 flows set it off, and a oneshot fires once; expected multishot or barrier"
        );
    }

    #[test]
    fn identifiers_counts_and_repetitions_are_checked() {
        let error = |lines: &str| {
            parse_htsim_cm(&format!("Nodes 4\nConnections 1\n{lines}\n"), "x.cm", None)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(error("0->1 id 0 start 0 size 5"), "x.cm:3: id = 0: expected 1 or more");
        assert_eq!(error("0->1 start 0 size 5 size 6"), "x.cm:3: size is given twice");
        assert_eq!(error("Nodes 5"), "x.cm:3: Nodes = 5: line 1 has it already");
        assert_eq!(
            error("0->1 start 0.5 size 5"),
            "x.cm:3: start = 0.5: expected a whole number at or above 0"
        );
        assert_eq!(
            error("trigger id 2 oneshot\ntrigger oneshot id 2"),
            "x.cm:4: trigger id = 2: the trigger of line 3 has it already; ids must differ"
        );
        let expected = "expected \"trigger id T oneshot\", \"... multishot\" or \"... barrier count K\"";
        assert_eq!(error("trigger id 2 barrier"), format!("x.cm:3: {expected}"));
        assert_eq!(error("trigger id 2 twoshot"), format!("x.cm:3: \"twoshot\": {expected}"));
    }

    #[test]
    fn htsim_reads_starts_with_decimals_and_triggers_in_any_order() {
        let text = "Nodes 2\nConnections 2\nTriggers 1\n0->1 start 7.000000 size 5 send_done_trigger 3 addon\n\
                    1->0 trigger 3 size 5\ntrigger barrier count 1 id 3\n";
        let file = parse_htsim_cm(text, "x.cm", Some(HtsimDialect::Csg)).unwrap();
        assert_eq!(file.flows[0].start, Time::from_ps(7));
        assert_eq!(
            file.flows[1].after,
            [FlowDependency { moment: Moment::Completion, ..FlowDependency::from("1") }]
        );
    }

    /// htsim's generator of all-to-alls with several flows per round writes this: the four flows of a round
    /// fire one trigger, and each flow that ends starts the next of the four flows that wait.
    #[test]
    fn several_flows_set_off_several_one_after_the_other() {
        let mut text = "Nodes 9\nConnections 8\nTriggers 1\n".to_owned();
        (1..5).for_each(|i| text += &format!("0->{i} id {i} start 0 size 100 send_done_trigger 1\n"));
        (5..9).for_each(|i| text += &format!("0->{i} id {i} trigger 1 size 100\n"));
        text += "trigger id 1 multishot\n";
        let file = parse_htsim_cm(&text, "x.cm", None).unwrap();
        let after: Vec<FlowDependency> = (1..5)
            .map(|i| FlowDependency {
                moment: Moment::Completion,
                ..FlowDependency::from(i.to_string().as_str())
            })
            .collect();
        for (i, flow) in file.flows.iter().enumerate() {
            let expected = if i < 4 { &[][..] } else { &after[..] };
            assert_eq!(flow.after, expected);
        }
        let needs: Vec<Option<u32>> = file.flows.iter().map(|flow| flow.needs).collect();
        assert_eq!(needs, [None, None, None, None, Some(1), Some(2), Some(3), None]);
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in "([0-9a-z>-]{0,6} ?[0-9a-z_ -]{0,20}\n){0,5}") {
            let _ = parse_htsim_cm(&text, "any", None);
            let _ = parse_htsim_cm(&format!("Nodes 9\nConnections 1\n{text}"), "any", None);
        }
    }
}
