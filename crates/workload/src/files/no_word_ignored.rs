//! Tests that no word of a file is ignored silently: each one has an effect, is rejected, or is named in a
//! note.

use std::fmt::Debug;

use super::*;
use crate::cdf::SizeCdf;

/// Returns the words of a file, each with its line, that can be replaced without an effect. `answer` returns
/// all that is read, with notes, or the error.
fn unheeded<'a>(text: &'a str, answer: &dyn Fn(&str) -> String) -> Vec<(usize, &'a str)> {
    let plain = answer(text);
    assert!(!plain.starts_with("refused"), "{plain}");
    let mut unheeded = Vec::new();
    for (line, content) in (1..).zip(text.lines()) {
        for word in content.split([' ', '\t', ',']).filter(|word| !word.is_empty()) {
            let at = word.as_ptr() as usize - text.as_ptr() as usize;
            let with = |other: &String| format!("{}{other}{}", &text[..at], &text[at + word.len()..]);
            if others(word).iter().all(|other| answer(&with(other)) == plain) {
                unheeded.push((line, word));
            }
        }
    }
    unheeded
}

/// Returns replacements of a word: other numbers, or other names.
fn others(word: &str) -> Vec<String> {
    match word.parse::<i64>() {
        Ok(number) => vec![(number + 1).to_string(), (number + 7).to_string(), (number * 3 + 2).to_string()],
        Err(_) => vec![format!("{word}z"), format!("z{word}"), word.chars().rev().collect()],
    }
}

fn answer<T: Debug, E: Debug>(read: Result<T, E>) -> String {
    match read {
        Ok(read) => format!("{read:?}"),
        Err(why) => format!("refused: {why:?}"),
    }
}

#[test]
fn of_lists_of_flows() {
    let csv = "src,dst,size_bytes,start_ns,id,after,after_delays_ns,after_moments,after_count,delay_ns,connection\n\
               0,1,4000,5,a,,,,,,\n2,3,500,0.5,b,,,,,,4\n1,2,700,9,c,a b,3 4,delivery completion,1,,8\n3,0,10,0,d,c,,,,6,\n";
    let read = |text: &str| answer(parse_csv(text, "f.csv"));
    assert_eq!(unheeded(csv, &read), []);

    let hpcc = "2\n0 1 3 100 4000 2.0\n2 1 3 100 500 2.5\n";
    let read = |text: &str| answer(parse_ns3(text, "flow.txt", None));
    assert_eq!(unheeded(hpcc, &read), []);

    let conweave = "2\n0 1 3 4000 2.0\n2 1 3 500 2.5\n0 1 3 9 3\n";
    let read = |text: &str| answer(parse_ns3(text, "flow.txt", None));
    let found = unheeded(conweave, &read);
    // The file announces two flows, so the third is not read.
    assert_eq!(found, [(4, "0"), (4, "1"), (4, "3"), (4, "9"), (4, "3")]);
    let file = parse_ns3(conweave, "flow.txt", None).unwrap();
    assert!(file.notes.join("\n").contains("announce"), "{:?}", file.notes);
}

#[test]
fn of_connection_matrices() {
    let text = "Nodes 8\nConnections 4\nTriggers 2\nFailures 1\n\
                0->1 id 1 start 7 size 4000 send_done_trigger 1 prio 3\n\
                1->2 id 2 trigger 1 size 500 recv_done_trigger 2 addon\n\
                2->3 id 3 trigger 2 size 600\n2->3 id 3 msg 1 start 9 size 70\n\
                trigger id 1 oneshot\ntrigger id 2 barrier count 1\nfailure switch 1 2 3\n";
    let read = |text: &str| answer(parse_htsim_cm(text, "x.cm", None));
    let found = unheeded(text, &read);
    let file = parse_htsim_cm(text, "x.cm", None).unwrap();
    // The number of a message is a name that nothing refers to.
    assert_eq!(found, [(5, "3"), (8, "1"), (11, "switch"), (11, "1"), (11, "2"), (11, "3")]);
    let unused = file.unused.join("\n");
    assert!(unused.contains("prio and addon") && unused.contains("ailure"), "{unused}");
}

#[test]
fn of_schedules_workloads_and_distributions() {
    let goal = "num_ranks 2\nrank 0 {\nc: calc 1500 cpu 1\ns: send 4096b to 1 tag 7 cpu 2 nic 1\ns requires c\n}\n\
                rank 1 {\nr: recv 4096b from 0 tag 7\nd: calc 9\nd irequires r\n}\n";
    let read = |text: &str| answer(parse_goal(text, "x.goal"));
    assert_eq!(unheeded(goal, &read), []);

    let simai = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 2 pp: 2 vpp: 1 ga: 2 all_gpus: 8 checkpoints: 1 0 checkpoint_initiates: 1 1 pp_comm: 64\n3\n\
                 a -1 1000 ALLREDUCE 64 2000 ALLGATHER 65 3000 ALLTOALL_DP_EP 66 100\n\
                 b -1 1001 NONE 0 2001 REDUCESCATTER 67 3001 ALLREDUCE_DP_EP 68 101\n\
                 c -1 1002 ALLTOALL_EP 69 2002 BROADCAST 70 3002 NONE 0 102\n";
    let read = |text: &str| answer(parse_simai(text, "x.txt"));
    let found = unheeded(simai, &read);
    assert_eq!(found, []);

    for text in ["0 0\n1000 0.5\n30000 1.0\n", "0 0\n1000 50\n30000 100\n"] {
        let read = |text: &str| {
            answer(
                SizeCdf::parse(text, "x.cdf")
                    .map(|cdf| (cdf.notes().to_vec(), [0.1, 0.4, 0.6, 0.9].map(|p| cdf.quantile(p)))),
            )
        };
        assert_eq!(unheeded(text, &read), [], "{text}");
    }
}
