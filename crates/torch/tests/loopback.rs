//! Groups of processes over loopback; each is a device of this process.
#![allow(unsafe_code, reason = "lends memory of vectors to the network")]

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pathweave_torch::{
    Buffer, Call, DeviceConfig, Driving, Dtype, Group, Keep, Kind, Neighbours, Process, ReduceOp, Reduction,
    Span, Ticket, plans,
};

const PATIENCE: Duration = Duration::from_secs(30);
const SUM: Reduction = Reduction { dtype: Dtype::F32, op: ReduceOp::Sum };

/// Values that stay where they are, since the network knows their address.
type Values = Arc<Mutex<Vec<f32>>>;

fn processes(count: usize, driving: Driving, neighbours: Neighbours) -> (Vec<Arc<Process>>, Vec<Group>) {
    let config = || {
        let mut config = DeviceConfig::loopback();
        config.driving = driving;
        config.peer_timeout = Duration::from_secs(2);
        config
    };
    let processes: Vec<_> = (0..count).map(|_| Process::with(config(), neighbours).unwrap()).collect();
    let groups = joined(&processes);
    (processes, groups)
}

fn joined(processes: &[Arc<Process>]) -> Vec<Group> {
    let records: Vec<String> = processes.iter().map(|process| process.record()).collect();
    (0..).zip(processes).map(|(rank, process)| process.join(rank, &records).unwrap()).collect()
}

fn buffer(values: &Values) -> (Buffer, Keep) {
    let inner = values.lock().unwrap();
    let buffer = Buffer { address: inner.as_ptr() as usize, bytes: 4 * inner.len() };
    (buffer, values.clone() as Keep)
}

fn values(rank: usize, count: usize) -> Values {
    Arc::new(Mutex::new((0..count).map(|index| (index % 1_000 + rank) as f32).collect()))
}

fn all_reduce(group: &Group, values: &Values) -> Result<Arc<Ticket>, String> {
    let (buffer, keep) = buffer(values);
    let elements = buffer.bytes as u64 / 4;
    let call =
        Call { kind: Kind::AllReduce, op: Some(ReduceOp::Sum), dtype: Dtype::F32, root: None, elements };
    let plan = plans::all_reduce(group.place(), SUM, Span::whole(0, buffer.bytes));
    // SAFETY: the vector lives as long as `keep`, and is looked at after the end of the operation only.
    unsafe { group.collective(call, plan, &[buffer], &keep) }
}

fn message(bytes: usize) -> Call {
    Call { kind: Kind::Message, op: None, dtype: Dtype::F32, root: None, elements: bytes as u64 / 4 }
}

fn succeeds(ticket: &Ticket) {
    assert!(ticket.wait(PATIENCE));
    assert!(ticket.outcome().unwrap().is_ok(), "{:?}", ticket.outcome());
}

fn error(ticket: &Ticket) -> String {
    assert!(ticket.wait(PATIENCE));
    ticket.outcome().unwrap().clone().unwrap_err()
}

#[test]
fn sums_are_right_whoever_drives_the_loop() {
    let thread = Driving::Thread { core: None };
    for (ranks, driving, neighbours) in [
        (2, thread, Neighbours::OverNetwork),
        (2, thread, Neighbours::Copy),
        (3, Driving::Standby, Neighbours::OverNetwork),
        (3, Driving::Standby, Neighbours::Copy),
        (4, Driving::Standby, Neighbours::OverNetwork),
    ] {
        let (processes, groups) = processes(ranks, driving, neighbours);
        for count in [0, 1, 1_000, 100_003, 1_500_001] {
            let all: Vec<Values> = (0..ranks).map(|rank| values(rank, count)).collect();
            let started = groups.iter().zip(&all).map(|(group, values)| all_reduce(group, values).unwrap());
            let tickets: Vec<_> = started.collect();
            tickets.iter().for_each(|ticket| succeeds(ticket));
            let others = (ranks * (ranks - 1) / 2) as f32;
            for values in &all {
                let got = values.lock().unwrap();
                let wrong = got
                    .iter()
                    .enumerate()
                    .find(|(index, value)| **value != (index % 1_000 * ranks) as f32 + others);
                assert_eq!(wrong, None, "{ranks} ranks, {count}");
            }
        }
        for process in processes {
            let copies = process.copies();
            assert_eq!(copies.copies > 0, neighbours == Neighbours::Copy, "{copies:?}");
            assert_eq!((copies.refused, copies.refusal), (0, None));
        }
    }
}

#[test]
fn messages_of_any_length_arrive_in_several_groups() {
    let (processes, first) = processes(2, Driving::Standby, Neighbours::Copy);
    for groups in [first, joined(&processes)] {
        for count in [0, 1, 4_096, 4_097, 700_000] {
            let (sent, got) = (values(5, count), values(0, count));
            let ((from, keep), (to, kept)) = (buffer(&sent), buffer(&got));
            // SAFETY: as in `all_reduce`.
            let (receives, sends) = unsafe {
                let receives = groups[1].receive(None, 3, message(to.bytes), to, &kept).unwrap();
                (receives, groups[0].send(1, 3, message(from.bytes), from, &keep).unwrap())
            };
            succeeds(&receives);
            succeeds(&sends);
            assert_eq!(receives.outcome(), Some(&Ok(Some(0))));
            assert!(*got.lock().unwrap() == *sent.lock().unwrap(), "{count}");
        }
    }
}

#[test]
fn a_process_that_has_gone_is_named_and_one_that_is_late_too() {
    let (mut processes, mut groups) = processes(3, Driving::Standby, Neighbours::OverNetwork);
    let all: Vec<Values> = (0..3).map(|rank| values(rank, 200_000)).collect();
    let tickets: Vec<_> =
        groups.iter().zip(&all).map(|(group, all)| all_reduce(group, all).unwrap()).collect();
    tickets.iter().for_each(|ticket| succeeds(ticket));

    let late: Vec<_> =
        groups[..2].iter().zip(&all).map(|(group, all)| all_reduce(group, all).unwrap()).collect();
    assert!(!late[0].wait(Duration::from_millis(200)));
    late[0].expire(Instant::now());
    let text = error(&late[0]);
    assert!(text.contains("all_reduce(sum, 200000 x float32)") && text.contains("rank 2"), "{text}");
    assert_eq!(error(&late[1]), text, "the others are told");
    assert_eq!(
        all_reduce(&groups[2], &all[2]).map(|ticket| error(&ticket)).unwrap_or_else(|text| text),
        text
    );

    let others = joined(&processes);
    let waiting: Vec<_> =
        others[..2].iter().zip(&all).map(|(group, all)| all_reduce(group, all).unwrap()).collect();
    drop((groups.pop(), others.into_iter().nth(2)));
    processes.pop().unwrap().close();
    for ticket in waiting {
        let text = error(&ticket);
        assert!(text.contains("rank 2 is lost") || text.contains("destroyed"), "{text}");
    }
}
