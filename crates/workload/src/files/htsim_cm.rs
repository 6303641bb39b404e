//! Connection matrices of htsim, `.cm`: numbers of nodes, connections, triggers and failures, then one of them a line.

use std::collections::BTreeMap;

use pathweave_units::Time;

use super::{After, FlowFile, FlowRecord};
use crate::error::FileError;

/// When a trigger starts the flows that wait for it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fires {
    /// Once, at the end of a flow.
    OneShot,
    /// Once for each end of a flow, starting one flow each time.
    MultiShot,
    /// Once so many flows have ended.
    Barrier(u64),
}

/// A trigger as declared.
struct Trigger {
    line: u64,
    fires: Fires,
}

/// A flow as written.
struct Flow {
    record: FlowRecord,
    waits_for: Option<u64>,
    sets_off: Vec<u64>,
}

/// Parses a connection matrix.
///
/// A flow that waits for a trigger begins when the flows that set it off have been delivered, whether they do so when sent or
/// when received (a note says so). Triggers of which the order of events decides what they start (of one shot or several,
/// set off by several flows; barriers that count fewer or more flows than there are) cannot be told beforehand and are
/// refused. Failures, priorities and messages are not taken over, with a note.
pub fn parse_htsim_cm(text: &str, file: &str) -> Result<FlowFile, FileError> {
    let mut announced: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    let mut flows: Vec<Flow> = Vec::new();
    let mut triggers: BTreeMap<u64, Trigger> = BTreeMap::new();
    let (mut failures, mut sent_triggers, mut with_more) = (0u64, 0u64, 0u64);
    for (line, content) in (1u64..).zip(text.lines()) {
        let words: Vec<&str> = content.split_whitespace().collect();
        let at = |what: String| FileError::at(file, line, what);
        match words[..] {
            [] => {}
            [first, ..] if first.starts_with('#') => {}
            [name @ ("Nodes" | "Connections" | "Triggers" | "Failures"), count] => {
                let count = number(name, count).map_err(at)?;
                if announced.insert(name, (line, count)).is_some() {
                    return Err(at(format!("{name} is given twice")));
                }
            }
            ["trigger", ..] => {
                let (id, fires) = parse_trigger(&words).map_err(at)?;
                if let Some(first) = triggers.insert(id, Trigger { line, fires }) {
                    return Err(at(format!("trigger id {id}: that of line {} already", first.line)));
                }
            }
            ["failure", ..] => failures += 1,
            [pair, ..] if pair.contains("->") => {
                let (flow, ignored) = parse_flow(line, &words, &mut sent_triggers).map_err(at)?;
                with_more += u64::from(ignored);
                flows.push(flow);
            }
            [other, ..] => {
                let shown: String = other.chars().take(40).collect();
                let known = "Nodes, Connections, Triggers, Failures, SRC->DST, trigger or failure";
                return Err(at(format!("\"{shown}\": expected a line that begins with {known}")));
            }
        }
    }
    let nodes = announced.get("Nodes").map(|&(_, count)| count);
    let Some(nodes) = nodes else { return Err(FileError::whole(file, "a line \"Nodes N\" is missing")) };
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
                return Err(FileError::at(
                    file,
                    record.line,
                    format!("{field} = {id}: nodes are below {nodes}"),
                ));
            }
        }
    }
    let mut unused = Vec::new();
    if failures > 0 {
        unused.push(format!(
            "{file}: {failures} failures are not taken over; write them as faults of the scenario"
        ));
    }
    if sent_triggers > 0 {
        unused.push(format!(
            "{file}: {sent_triggers} triggers at the end of sending are set off when all is delivered"
        ));
    }
    if with_more > 0 {
        unused.push(format!("{file}: prio and msg of {with_more} flows are not used"));
    }
    Ok(FlowFile { flows: resolve(flows, &triggers, file)?, hosts: Some(nodes), notes: Vec::new(), unused })
}

fn number(name: &str, value: &str) -> Result<u64, String> {
    value.parse().map_err(|_| {
        let shown: String = value.chars().take(40).collect();
        format!("{name} = {shown}: expected a whole number at or above 0")
    })
}

fn parse_trigger(words: &[&str]) -> Result<(u64, Fires), String> {
    match *words {
        ["trigger", "id", id, "oneshot"] => Ok((number("trigger id", id)?, Fires::OneShot)),
        ["trigger", "id", id, "multishot"] => Ok((number("trigger id", id)?, Fires::MultiShot)),
        ["trigger", "id", id, "barrier", "count", count] | ["trigger", "id", id, "barrier", count] => {
            Ok((number("trigger id", id)?, Fires::Barrier(number("count", count)?)))
        }
        _ => {
            Err("expected \"trigger id T oneshot\", \"... multishot\" or \"... barrier count K\"".to_owned())
        }
    }
}

/// A flow, and whether some of what is written about it is not used.
fn parse_flow(line: u64, words: &[&str], sent_triggers: &mut u64) -> Result<(Flow, bool), String> {
    let (src, dst) = words[0].split_once("->").ok_or_else(|| "expected SRC->DST".to_owned())?;
    let mut record =
        FlowRecord { line, src: number("src", src)?, dst: number("dst", dst)?, ..FlowRecord::default() };
    // Unique, and no name a file can give.
    record.id = Some(format!("line{line}"));
    let (mut waits_for, mut sets_off, mut unused) = (None, Vec::new(), false);
    let (mut start, mut size) = (None, None);
    for pair in words[1..].chunks(2) {
        let &[key, value] = pair else { return Err(format!("{}: its value is missing", pair[0])) };
        match key {
            "id" => _ = number(key, value)?,
            "start" => start = Some(Time::from_ps(number(key, value)?)),
            "size" => size = Some(number(key, value)?),
            "trigger" => waits_for = Some(number(key, value)?),
            "send_done_trigger" | "recv_done_trigger" => {
                *sent_triggers += u64::from(key == "send_done_trigger");
                sets_off.push(number(key, value)?);
            }
            "prio" | "msg" => {
                number(key, value)?;
                unused = true;
            }
            other => {
                let shown: String = other.chars().take(40).collect();
                let known = "id, start, trigger, size, send_done_trigger, recv_done_trigger, prio or msg";
                return Err(format!("\"{shown}\": expected {known}"));
            }
        }
    }
    if start.is_some() == waits_for.is_some() {
        return Err("expected start or trigger, one of them".to_owned());
    }
    record.start = start.unwrap_or_default();
    record.size_bytes = size.ok_or_else(|| "size is missing".to_owned())?;
    Ok((Flow { record, waits_for, sets_off }, unused))
}

/// Triggers become flows that wait for others.
fn resolve(
    flows: Vec<Flow>,
    triggers: &BTreeMap<u64, Trigger>,
    file: &str,
) -> Result<Vec<FlowRecord>, FileError> {
    let mut sources: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    let mut targets: BTreeMap<u64, u64> = BTreeMap::new();
    for Flow { record, waits_for, sets_off } in &flows {
        for trigger in sets_off.iter().chain(waits_for) {
            if !triggers.contains_key(trigger) {
                return Err(FileError::at(file, record.line, format!("trigger {trigger}: none has this id")));
            }
        }
        for trigger in sets_off {
            sources.entry(*trigger).or_default().extend(record.id.clone());
        }
        if let Some(trigger) = waits_for {
            *targets.entry(*trigger).or_default() += 1;
        }
    }
    for (id, trigger) in triggers {
        let Some(&waiting) = targets.get(id) else { continue };
        let set_off = sources.get(id).map_or(0, Vec::len) as u64;
        let what = match trigger.fires {
            _ if set_off == 0 => "no flow sets it off".to_owned(),
            Fires::OneShot if set_off > 1 => {
                format!("{set_off} flows set it off; which is first is not known beforehand")
            }
            Fires::MultiShot if set_off > 1 || waiting > 1 => {
                format!("{set_off} flows set off {waiting}; which starts which is not known beforehand")
            }
            Fires::Barrier(count) if count != set_off => {
                format!("it counts {count}, but {set_off} flows set it off")
            }
            _ => continue,
        };
        return Err(FileError::at(file, trigger.line, format!("trigger {id}: {what}")));
    }
    let after = |flow: Flow| {
        let mut record = flow.record;
        if let Some(trigger) = flow.waits_for {
            record.after = sources[&trigger].iter().map(|id| After::from(id.as_str())).collect();
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
        let file = parse_htsim_cm(text, "x.cm").unwrap();
        assert_eq!(file.flows.len(), 3);
        let of =
            |i: usize| (file.flows[i].src, file.flows[i].dst, file.flows[i].size_bytes, file.flows[i].start);
        assert_eq!(of(0), (0, 1, 2_000_000, Time::ZERO));
        assert_eq!(of(1), (2, 3, 10, Time::from_ns(5)));
        assert_eq!(file.flows[2].after, [After::from("line5"), After::from("line6")]);
        assert_eq!((file.hosts, file.unused.len()), (Some(4), 2));
    }

    #[test]
    fn errors_name_line_field_and_what_is_allowed() {
        let error = |text: &str| parse_htsim_cm(text, "x.cm").unwrap_err().to_string();
        let body = |lines: &str| error(&format!("Nodes 4\nConnections 2\n{lines}\n"));
        assert_eq!(error(""), "x.cm: a line \"Nodes N\" is missing");
        assert_eq!(error("Nodes 4\n"), "x.cm: a line \"Connections N\" is missing");
        assert_eq!(body("0->1 start 0 size 5"), "x.cm:2: Connections = 2: there are 1");
        assert_eq!(body("0->1 start 0 size 5\n0->4 start 0 size 5"), "x.cm:4: dst = 4: nodes are below 4");
        assert_eq!(body("0->1 start 0"), "x.cm:3: size is missing");
        assert_eq!(body("0->1 start 0 size -5"), "x.cm:3: size = -5: expected a whole number at or above 0");
        assert_eq!(body("0->1 size 5"), "x.cm:3: expected start or trigger, one of them");
        assert!(
            body("0->1 start 0 sise 5").starts_with("x.cm:3: \"sise\": expected id, start, trigger, size")
        );
        assert!(
            body("Conections 4")
                .starts_with("x.cm:3: \"Conections\": expected a line that begins with Nodes")
        );
        assert_eq!(body("0->1 start 0 size 5\n1->2 trigger 3 size 5"), "x.cm:4: trigger 3: none has this id");
        let two = "0->1 start 0 size 5 recv_done_trigger 3\n1->2 trigger 3 size 5\n";
        assert_eq!(
            body(&format!("{two}trigger id 3 barrier count 2")),
            "x.cm:5: trigger 3: it counts 2, but 1 flows set it off"
        );
        let both = "0->1 start 0 size 5 recv_done_trigger 3\n1->2 start 0 size 5 recv_done_trigger 3\n";
        let text = format!("Nodes 4\nConnections 3\n{both}2->3 trigger 3 size 5\ntrigger id 3 oneshot\n");
        assert_eq!(
            error(&text),
            "x.cm:6: trigger 3: 2 flows set it off; which is first is not known beforehand"
        );
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in "([0-9a-z>-]{0,6} ?[0-9a-z_ -]{0,20}\n){0,5}") {
            let _ = parse_htsim_cm(&text, "any");
            let _ = parse_htsim_cm(&format!("Nodes 9\nConnections 1\n{text}"), "any");
        }
    }
}
