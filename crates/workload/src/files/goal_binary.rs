//! Schedules in the binary form of GOAL, which LogGOPSim's txt2bin writes and ATLAHS publishes.
//!
//! All numbers are little endian and packed. A file begins with a magic number, the number of ranks, the
//! highest cpu and nic, and the begin and end of each rank's part, counted from byte 8. A part consists of
//! the number of operations, the operations without predecessors, all operations of 39 bytes each, and the
//! indices of their successors.

use pathweave_units::Duration;

use super::goal::{GoalAction, GoalDependency, GoalDependencyKind, GoalFile, GoalOp, GoalRank};
use crate::error::FileError;

/// First number of a file.
const MAGIC: u64 = 4223;
/// First number of a file whose writer did not finish.
const UNFINISHED_MAGIC: u64 = 2342;
/// Offset in the file from which positions are counted.
const ORIGIN: usize = 8;
/// Bytes of an operation.
const OPERATION: usize = 39;
/// Rank or tag of a receive that matches any.
const ANY: u32 = u32::MAX;

/// Number of bytes at the begin of a file that identify the format.
pub(crate) const HEAD_BYTES: u64 = 8;

/// Returns true if a file that begins with `head` is a schedule in binary form.
pub fn is_goal_binary(head: &[u8]) -> bool {
    [MAGIC, UNFINISHED_MAGIC].iter().any(|magic| head.starts_with(&magic.to_le_bytes()))
}

/// Parses a schedule in binary form. `file` is its name in error messages. Lines in the result are the
/// indices of operations within a rank, from 1.
///
/// Receives from any rank or with any tag are rejected, as in the text form.
pub fn parse_goal_binary(bytes: &[u8], file: &str) -> Result<GoalFile, FileError> {
    parse(bytes).map_err(|what| FileError::whole(file, what))
}

fn parse(bytes: &[u8]) -> Result<GoalFile, String> {
    let mut head = Bytes { bytes, at: 0 };
    match head.u64("the first number")? {
        MAGIC => {}
        UNFINISHED_MAGIC => {
            return Err(format!("begins with {UNFINISHED_MAGIC}: its writer did not finish; write it again"));
        }
        other => {
            return Err(format!(
                "no text, and it begins with {other}, where the binary form of GOAL has {MAGIC}; expected a schedule in one of both forms"
            ));
        }
    }
    let ranks = head.u32("the number of ranks")?;
    head.skip(2, "the most cpu and nic")?;
    let mut parts = Vec::new();
    for rank in 0..ranks {
        let [from, to] = [head.u64("where a rank begins")?, head.u64("where a rank ends")?];
        let part = || {
            let (from, to) = (usize::try_from(from).ok()?, usize::try_from(to).ok()?);
            bytes.get(from.checked_add(ORIGIN)?..to.checked_add(ORIGIN)?)
        };
        parts.push(part().ok_or_else(|| {
            format!("rank {rank}: is from byte {from} to {to}, the file has {} bytes", bytes.len())
        })?);
    }
    let rank = |(number, part): (usize, &&[u8])| rank(part).map_err(|what| format!("rank {number}: {what}"));
    Ok(GoalFile { ranks: parts.iter().enumerate().map(rank).collect::<Result<_, _>>()? })
}

/// An operation whose successors have not been resolved yet.
struct Read {
    act: GoalAction,
    cpu: u32,
    nic: u32,
    /// Number of operations that this one waits for.
    waits: u32,
    /// Number of operations that wait for the end of this one, and the index of the first in the list of
    /// successors; likewise `begun`, for those that wait for its begin.
    over: (u32, u32),
    begun: (u32, u32),
}

fn rank(part: &[u8]) -> Result<GoalRank, String> {
    let mut read = Bytes { bytes: part, at: 0 };
    let (count, roots) = (read.u32("the number of operations")?, read.u32("the number of roots")?);
    read.skip((roots as usize).saturating_mul(4), "the roots")?;
    // The list grows with the data present, not with the number that the file claims.
    let mut ops = Vec::new();
    for number in 0..count {
        ops.push(operation(&mut read).map_err(|what| format!("operation {number}: {what}"))?);
    }
    let mut successors = Vec::new();
    while read.at < part.len() {
        successors.push(read.u32("the operations that wait")?);
    }
    let mut waits = Vec::new();
    let mut found = vec![0u32; ops.len()];
    for (number, op) in (0..).zip(&ops) {
        for ((many, first), until) in
            [(op.over, GoalDependencyKind::Over), (op.begun, GoalDependencyKind::Begun)]
        {
            let (from, to) = (first as usize, (first as usize).saturating_add(many as usize));
            let Some(all) = (if many == 0 { Some(&[][..]) } else { successors.get(from..to) }) else {
                return Err(format!(
                    "operation {number}: its successors are numbers {from} to {to} of {}",
                    successors.len()
                ));
            };
            for &waiting in all {
                let Some(of) = found.get_mut(waiting as usize) else {
                    return Err(format!("operation {number}: operation {waiting} waits for it, of {count}"));
                };
                *of += 1;
                waits.push(GoalDependency { line: u64::from(waiting) + 1, op: waiting, on: number, until });
            }
        }
    }
    if let Some((number, (op, found))) =
        ops.iter().zip(found).enumerate().find(|(_, (op, found))| op.waits != *found)
    {
        return Err(format!(
            "operation {number}: waits for {} operations, {found} have it behind them",
            op.waits
        ));
    }
    let whole = |(line, op): (u64, &Read)| GoalOp { line, act: op.act, cpu: op.cpu, nic: op.nic };
    Ok(GoalRank { ops: (1..).zip(&ops).map(whole).collect(), waits })
}

fn operation(read: &mut Bytes<'_>) -> Result<Read, String> {
    let end = read.at.saturating_add(OPERATION);
    if end > read.bytes.len() {
        return Err("the file ends within it".to_owned());
    }
    let waits = read.u32("dependencies")?;
    let kind = read.u8("type")?;
    let (peer, amount, tag) = (read.u32("peer")?, read.u64("size")?, read.u32("tag")?);
    let (cpu, nic) = (read.u8("cpu")?.into(), read.u8("nic")?.into());
    let mut list = || Ok::<_, String>((read.u32("successors")?, read.u32("successors")?));
    let (over, begun) = (list()?, list()?);
    let any = || {
        let what = if peer == ANY { "peer = any" } else { "tag = any" };
        Err(format!("{what}: its send is known only while the schedule runs; expected one"))
    };
    let act = match kind {
        1 | 2 if peer == ANY || tag == ANY => return any(),
        1 => GoalAction::Send { to: peer, bytes: amount, tag },
        2 => GoalAction::Receive { from: peer, bytes: amount, tag },
        3 => GoalAction::Compute(
            amount
                .checked_mul(1000)
                .map(Duration::from_ps)
                .ok_or_else(|| format!("calc {amount}: too long"))?,
        ),
        other => return Err(format!("type = {other}: expected 1 (send), 2 (receive) or 3 (calc)")),
    };
    Ok(Read { act, cpu, nic, waits, over, begun })
}

/// Reader of consecutive numbers in a byte string.
struct Bytes<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bytes<'_> {
    fn take<const N: usize>(&mut self, what: &str) -> Result<[u8; N], String> {
        let found = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<N>());
        let found = *found.ok_or_else(|| format!("ends within {what}; truncated?"))?;
        self.at += N;
        Ok(found)
    }
    fn skip(&mut self, bytes: usize, what: &str) -> Result<(), String> {
        let end = self.at.checked_add(bytes).filter(|&end| end <= self.bytes.len());
        self.at = end.ok_or_else(|| format!("ends within {what}; truncated?"))?;
        Ok(())
    }
    fn u8(&mut self, what: &str) -> Result<u8, String> {
        self.take::<1>(what).map(|[byte]| byte)
    }
    fn u32(&mut self, what: &str) -> Result<u32, String> {
        self.take(what).map(u32::from_le_bytes)
    }
    fn u64(&mut self, what: &str) -> Result<u64, String> {
        self.take(what).map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::files::parse_goal;

    /// An operation: dependencies, type, peer, size, tag, cpu, successors of its end, successors of its
    /// begin.
    type Op = (u32, u8, u32, u64, u32, u8, (u32, u32), (u32, u32));

    fn part(ops: &[Op], successors: &[u32]) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend((ops.len() as u32).to_le_bytes());
        out.extend(1u32.to_le_bytes());
        out.extend(0u32.to_le_bytes());
        for &(waits, kind, peer, size, tag, cpu, over, begun) in ops {
            out.extend(waits.to_le_bytes());
            out.push(kind);
            out.extend(peer.to_le_bytes());
            out.extend(size.to_le_bytes());
            out.extend(tag.to_le_bytes());
            out.extend([cpu, 0]);
            for number in [over.0, over.1, begun.0, begun.1] {
                out.extend(number.to_le_bytes());
            }
        }
        successors.iter().for_each(|number| out.extend(number.to_le_bytes()));
        out
    }

    fn file(parts: &[Vec<u8>]) -> Vec<u8> {
        let mut out = MAGIC.to_le_bytes().to_vec();
        out.extend((parts.len() as u32).to_le_bytes());
        out.extend([1, 0]);
        let mut at = (out.len() + 16 * parts.len() - ORIGIN) as u64;
        for part in parts {
            out.extend(at.to_le_bytes());
            at += part.len() as u64;
            out.extend(at.to_le_bytes());
        }
        parts.iter().for_each(|part| out.extend(part));
        out
    }

    const NONE: (u32, u32) = (0, 0);

    #[test]
    fn the_same_as_in_text() {
        let text = "num_ranks 2\nrank 0 {\nl1: calc 100 cpu 1\nl2: send 10b to 1 tag 5\nl3: calc 7\nl2 requires l1\nl3 irequires l2\n}\n\
                    rank 1 {\nl1: recv 10b from 0 tag 5\n}\n";
        let first = part(
            &[
                (0, 3, 0, 100, 0, 1, (1, 0), NONE),
                (1, 1, 1, 10, 5, 0, NONE, (1, 1)),
                (1, 3, 0, 7, 0, 0, NONE, NONE),
            ],
            &[1, 2],
        );
        let binary = file(&[first, part(&[(0, 2, 0, 10, 5, 0, NONE, NONE)], &[])]);
        let plain = |mut file: GoalFile| {
            for rank in &mut file.ranks {
                rank.ops.iter_mut().for_each(|op| op.line = 0);
                rank.waits.iter_mut().for_each(|wait| wait.line = 0);
            }
            file
        };
        assert_eq!(plain(parse_goal_binary(&binary, "b").unwrap()), plain(parse_goal(text, "t").unwrap()));
        // A file truncated at any byte is rejected.
        for cut in 0..binary.len() {
            assert!(parse_goal_binary(&binary[..cut], "b").is_err(), "{cut}");
        }
    }

    #[test]
    fn errors_name_what_is_allowed() {
        let error = |bytes: &[u8]| parse_goal_binary(bytes, "b").unwrap_err().to_string();
        let of = |op: Op, successors: &[u32]| error(&file(&[part(&[op], successors)]));
        assert!(
            error(&[2, 0, 0, 0, 0, 0, 0, 0])
                .contains("begins with 2, where the binary form of GOAL has 4223")
        );
        assert!(
            error(&UNFINISHED_MAGIC.to_le_bytes())
                .contains("begins with 2342: its writer did not finish; write it again")
        );
        assert_eq!(
            of((0, 4, 0, 0, 0, 0, NONE, NONE), &[]),
            "b: rank 0: operation 0: type = 4: expected 1 (send), 2 (receive) or 3 (calc)"
        );
        assert!(of((0, 2, ANY, 0, 0, 0, NONE, NONE), &[]).contains("peer = any"));
        assert!(
            of((1, 3, 0, 0, 0, 0, NONE, NONE), &[]).contains("waits for 1 operations, 0 have it behind them")
        );
        assert!(of((0, 3, 0, 0, 0, 0, (1, 0), NONE), &[9]).contains("operation 9 waits for it, of 1"));
        assert!(of((0, 3, 0, 0, 0, 0, (2, 0), NONE), &[0]).contains("numbers 0 to 2 of 1"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_goal_binary(&bytes, "any");
            let _ = parse_goal_binary(&file(&[bytes]), "any");
        }
    }
}
