//! Wire format of the messages between engines, sent in SENDs. Little endian, with strict parsing.
//!
//! Every message begins with 20 bytes:
//!
//! | Bytes | Field |
//! |---|---|
//! | 0 | version, [`VERSION`] |
//! | 1 | kind |
//! | 2 | flags: 1 has data, 2 has a tag, 4 requests an acknowledgement |
//! | 3 | zero |
//! | 4..8 | number of the message of this connection and direction, from 0, modulo 2^32 |
//! | 8..12 | number of processed messages of the other direction that requested an acknowledgement, modulo 2^32 |
//! | 12..14 | number of receives granted; 0 for none |
//! | 14 | permitted use of the receives: 0 any message, 1 no eager payload |
//! | 15 | zero |
//! | 16..20 | bytes of each receive; zero if none is granted |
//!
//! The fields of the kind follow. Fields have 8 bytes unless stated otherwise. Tag and data are present if the flags
//! say so, and payload is the rest of the message.
//!
//! | Kind | Name in the specification | Fields |
//! |---|---|---|
//! | 1 | EAGER | tag, data, payload |
//! | 2 | RTS | tag, data, number of the message, length, rkey, address |
//! | 3 | FIN | number of the message; 1 byte: 0 taken, 1 failed |
//! | 4 | GRANT | up to 8 more grants: 2 bytes count, 1 byte use, 3 bytes size |
//! | 5 | KEY? | key |
//! | 6 | KEY | key; then, unless it is refused: number of the region, rkey, address, base, length; 1 byte access: 1 READ, 2 WRITE; 1 byte events: 1 writes, 2 reads |
//! | 7, 8 | REVOKE, and its answer | number of the region |
//! | 9 | NOTIFY | data, number of the region; 1 byte: 0 written, 1 read; length |
//! | 10 | ATOMIC | number of the region, address, number of the atomic or 0; 1 byte each operation, type, form, zero; 2 bytes count; operands, comparands |
//! | 11 | RESULT | number of the atomic, values before; none if the memory was withdrawn |
//!
//! ACK is not a separate message: bytes 8 to 12 of every message carry it. Values of atomics are in the byte order of
//! their hosts, which must be the same. Specification: section 5, "Wire".

use alloc::vec::Vec;

use crate::atomic::{AtomicForm, AtomicOp, AtomicType};
use crate::header::Header;
use crate::memory::{Access, Remote};
use crate::request::Label;

/// Version of this format, which the ends also exchange during the handshake.
pub const VERSION: u8 = 2;
/// Largest number of runs in a GRANT besides the one in every message.
pub(crate) const MORE_RUNS: usize = 8;
/// Largest number of bytes before the payload of an eager message.
pub(crate) const EAGER_HEADER: u32 = 36;

const HAS_DATA: u8 = 1;
const HAS_TAG: u8 = 2;
const ASKS: u8 = 4;

/// Permitted use of granted receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReceiveUse {
    /// Any message that fits.
    Anything,
    /// Any message that does not make the receiver hold payload.
    NoPayload,
}

/// Consecutive receives of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReceiveRun {
    pub(crate) count: u16,
    pub(crate) size: u32,
    pub(crate) usage: ReceiveUse,
}

/// Message body. The specification describes the purpose of each kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Message<'a> {
    Eager { label: Label, data: Option<u64>, ack: AckRequest, payload: &'a [u8] },
    Announce { label: Label, data: Option<u64>, id: u64, len: u64, remote: Remote },
    Finish { id: u64, end: AnnounceResult },
    Grant { more: Vec<ReceiveRun> },
    KeyRequest { key: u64 },
    Key { key: u64, region: Option<RemoteRegion> },
    Revoke { region: u64 },
    Revoked { region: u64 },
    Notify { region: u64, what: Notice, len: u64, data: Option<u64> },
    Atomic(AtomicMessage<'a>),
    Result { id: u64, old: &'a [u8] },
}

/// Request of a message for an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AckRequest {
    No,
    Wanted,
}

/// Result with which the receiver ended an announced message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnnounceResult {
    /// The receiver has read as much as it needed.
    Taken,
    /// The receiver failed to read the message.
    Failed,
}

/// Kind of access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    Written,
    Read,
}

/// Accesses that are reported to the owner of a region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) of_writes: bool,
    pub(crate) of_reads: bool,
}

/// Description of a region, as its owner sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RemoteRegion {
    pub(crate) region: u64,
    pub(crate) remote: Remote,
    pub(crate) base: u64,
    pub(crate) len: u64,
    pub(crate) access: Access,
    pub(crate) told: Told,
}

/// Atomic to execute. `values` has `count` operands and `count` comparands, as far as the operation takes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AtomicMessage<'a> {
    pub(crate) region: u64,
    pub(crate) address: u64,
    /// Number of the atomic, repeated in the result; zero for [`AtomicForm::Plain`].
    pub(crate) id: u64,
    pub(crate) op: AtomicOp,
    pub(crate) kind: AtomicType,
    pub(crate) form: AtomicForm,
    pub(crate) count: u16,
    pub(crate) ack: AckRequest,
    pub(crate) values: &'a [u8],
}

impl AtomicMessage<'_> {
    /// Returns the number of bytes of values for the operation, form and count.
    fn values_len(&self) -> usize {
        let lists = usize::from(self.op.has_operand()) + usize::from(self.form == AtomicForm::Compare);
        lists * usize::from(self.count) * self.kind.size()
    }
}

/// Message with its sequence number, acknowledgement and grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    pub(crate) number: u32,
    pub(crate) acked: u32,
    pub(crate) grant: Option<ReceiveRun>,
    pub(crate) message: Message<'a>,
}

fn usage_code(usage: ReceiveUse) -> u8 {
    match usage {
        ReceiveUse::Anything => 0,
        ReceiveUse::NoPayload => 1,
    }
}

fn put_remote(out: &mut Header, remote: Remote) {
    out.put(&remote.rkey.to_le_bytes());
    out.put(&remote.address.to_le_bytes());
}

fn label_flags(label: Label, data: Option<u64>) -> u8 {
    let tag = if matches!(label, Label::Tagged(_)) { HAS_TAG } else { 0 };
    tag | if data.is_some() { HAS_DATA } else { 0 }
}

fn put_label(out: &mut Header, label: Label, data: Option<u64>) {
    if let Label::Tagged(tag) = label {
        out.put(&tag.to_le_bytes());
    }
    if let Some(data) = data {
        out.put(&data.to_le_bytes());
    }
}

impl Frame<'_> {
    /// Encodes everything except the payload, which follows.
    pub(crate) fn header(&self) -> Header {
        let ack = |ack: AckRequest| if ack == AckRequest::Wanted { ASKS } else { 0 };
        let (kind, flags) = match &self.message {
            Message::Eager { label, data, ack: a, .. } => (1, label_flags(*label, *data) | ack(*a)),
            Message::Announce { label, data, .. } => (2, label_flags(*label, *data)),
            Message::Finish { .. } => (3, 0),
            Message::Grant { .. } => (4, 0),
            Message::KeyRequest { .. } => (5, 0),
            Message::Key { .. } => (6, 0),
            Message::Revoke { .. } => (7, 0),
            Message::Revoked { .. } => (8, 0),
            Message::Notify { data, .. } => (9, label_flags(Label::Message, *data)),
            Message::Atomic(atomic) => (10, ack(atomic.ack)),
            Message::Result { .. } => (11, 0),
        };
        let mut out = Header::new();
        out.put(&[VERSION, kind, flags, 0]);
        out.put(&self.number.to_le_bytes());
        out.put(&self.acked.to_le_bytes());
        let (count, usage, size) = self.grant.map_or((0, 0, 0), |g| (g.count, usage_code(g.usage), g.size));
        out.put(&count.to_le_bytes());
        out.put(&[usage, 0]);
        out.put(&size.to_le_bytes());
        self.body(&mut out);
        out
    }

    fn body(&self, out: &mut Header) {
        match &self.message {
            Message::Eager { label, data, .. } => put_label(out, *label, *data),
            Message::Announce { label, data, id, len, remote } => {
                put_label(out, *label, *data);
                out.put(&id.to_le_bytes());
                out.put(&len.to_le_bytes());
                put_remote(out, *remote);
            }
            Message::Finish { id, end } => {
                out.put(&id.to_le_bytes());
                out.put(&[u8::from(*end == AnnounceResult::Failed)]);
            }
            Message::Grant { more } => {
                for run in more.iter().take(MORE_RUNS) {
                    out.put(&run.count.to_le_bytes());
                    out.put(&[usage_code(run.usage)]);
                    out.put(&run.size.to_le_bytes()[..3]);
                }
            }
            Message::KeyRequest { key } => out.put(&key.to_le_bytes()),
            Message::Key { key, region } => {
                out.put(&key.to_le_bytes());
                let Some(region) = region else { return };
                out.put(&region.region.to_le_bytes());
                put_remote(out, region.remote);
                out.put(&region.base.to_le_bytes());
                out.put(&region.len.to_le_bytes());
                let access = u8::from(region.access.reads()) | u8::from(region.access.writes()) << 1;
                let told = u8::from(region.told.of_writes) | u8::from(region.told.of_reads) << 1;
                out.put(&[access, told]);
            }
            Message::Revoke { region } | Message::Revoked { region } => out.put(&region.to_le_bytes()),
            Message::Notify { region, what, len, data } => {
                put_label(out, Label::Message, *data);
                out.put(&region.to_le_bytes());
                out.put(&[u8::from(*what == Notice::Read)]);
                out.put(&len.to_le_bytes());
            }
            Message::Atomic(atomic) => {
                out.put(&atomic.region.to_le_bytes());
                out.put(&atomic.address.to_le_bytes());
                out.put(&atomic.id.to_le_bytes());
                let form = match atomic.form {
                    AtomicForm::Plain => 0,
                    AtomicForm::Fetch => 1,
                    AtomicForm::Compare => 2,
                };
                out.put(&[atomic.op as u8, atomic.kind as u8, form, 0]);
                out.put(&atomic.count.to_le_bytes());
            }
            Message::Result { id, .. } => out.put(&id.to_le_bytes()),
        }
    }

    /// Parses one SEND. Returns `None` unless every field is exactly valid.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Frame<'_>> {
        let mut rest = Reader(bytes);
        let [version, kind, flags, zero] = rest.take()?;
        if version != VERSION || zero != 0 {
            return None;
        }
        let number = rest.u32()?;
        let acked = rest.u32()?;
        let count = rest.u16()?;
        let [usage, zero] = rest.take()?;
        let size = rest.u32()?;
        let grant = match (count, usage, size, zero) {
            (0, 0, 0, 0) => None,
            (0, ..) | (.., 0, _) => return None,
            (.., 0) => Some(ReceiveRun { count, size, usage: usage_from(usage)? }),
            _ => return None,
        };
        let allowed = match kind {
            1 => HAS_DATA | HAS_TAG | ASKS,
            2 => HAS_DATA | HAS_TAG,
            9 => HAS_DATA,
            10 => ASKS,
            _ => 0,
        };
        if flags & !allowed != 0 {
            return None;
        }
        let message = rest.message(kind, flags)?;
        let has_payload = matches!(kind, 1 | 10 | 11);
        (has_payload || rest.0.is_empty()).then_some(Frame { number, acked, grant, message })
    }
}

fn usage_from(code: u8) -> Option<ReceiveUse> {
    match code {
        0 => Some(ReceiveUse::Anything),
        1 => Some(ReceiveUse::NoPayload),
        _ => None,
    }
}

/// Unread rest of a message.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }
    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }
    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }
    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }
    fn flag(&mut self) -> Option<bool> {
        match self.take()? {
            [0] => Some(false),
            [1] => Some(true),
            [_] => None,
        }
    }
    fn remote(&mut self) -> Option<Remote> {
        let rkey = self.u64()?;
        Some(Remote { rkey, address: self.u64()? })
    }
    fn label(&mut self, flags: u8) -> Option<(Label, Option<u64>)> {
        let label = if flags & HAS_TAG != 0 { Label::Tagged(self.u64()?) } else { Label::Message };
        let data = if flags & HAS_DATA != 0 { Some(self.u64()?) } else { None };
        Some((label, data))
    }

    fn message(&mut self, kind: u8, flags: u8) -> Option<Message<'a>> {
        let ack = if flags & ASKS != 0 { AckRequest::Wanted } else { AckRequest::No };
        Some(match kind {
            1 => {
                let (label, data) = self.label(flags)?;
                Message::Eager { label, data, ack, payload: self.0 }
            }
            2 => {
                let (label, data) = self.label(flags)?;
                let (id, len) = (self.u64()?, self.u64()?);
                let remote = self.remote()?;
                // The end of the range must be a valid address, too.
                remote.address.checked_add(len)?;
                Message::Announce { label, data, id, len, remote }
            }
            3 => {
                let id = self.u64()?;
                Message::Finish {
                    id,
                    end: if self.flag()? { AnnounceResult::Failed } else { AnnounceResult::Taken },
                }
            }
            4 => {
                let mut more = Vec::new();
                while !self.0.is_empty() {
                    let count = self.u16()?;
                    let [usage, a, b, c] = self.take()?;
                    let size = u32::from_le_bytes([a, b, c, 0]);
                    if count == 0 || size == 0 || more.len() == MORE_RUNS {
                        return None;
                    }
                    more.push(ReceiveRun { count, size, usage: usage_from(usage)? });
                }
                Message::Grant { more }
            }
            5 => Message::KeyRequest { key: self.u64()? },
            6 => {
                let key = self.u64()?;
                let region = if self.0.is_empty() { None } else { Some(self.region()?) };
                Message::Key { key, region }
            }
            7 => Message::Revoke { region: self.u64()? },
            8 => Message::Revoked { region: self.u64()? },
            9 => {
                let (_, data) = self.label(flags)?;
                let region = self.u64()?;
                let what = if self.flag()? { Notice::Read } else { Notice::Written };
                Message::Notify { region, what, len: self.u64()?, data }
            }
            10 => Message::Atomic(self.atomic(ack)?),
            11 => Message::Result { id: self.u64()?, old: self.0 },
            _ => return None,
        })
    }

    fn region(&mut self) -> Option<RemoteRegion> {
        let region = self.u64()?;
        let remote = self.remote()?;
        let (base, len) = (self.u64()?, self.u64()?);
        let access = match self.take()? {
            [1] => Access::Read,
            [2] => Access::Write,
            [3] => Access::ReadWrite,
            [_] => return None,
        };
        let [told] = self.take()?;
        base.checked_add(len)?;
        remote.address.checked_add(len)?;
        let told = (told <= 3).then_some(Told { of_writes: told & 1 != 0, of_reads: told & 2 != 0 })?;
        Some(RemoteRegion { region, remote, base, len, access, told })
    }

    fn atomic(&mut self, ack: AckRequest) -> Option<AtomicMessage<'a>> {
        let (region, address, id) = (self.u64()?, self.u64()?, self.u64()?);
        let [op, kind, form, zero] = self.take()?;
        let form = match form {
            0 => AtomicForm::Plain,
            1 => AtomicForm::Fetch,
            2 => AtomicForm::Compare,
            _ => return None,
        };
        let op = *AtomicOp::ALL.get(usize::from(op))?;
        let kind = *AtomicType::ALL.get(usize::from(kind))?;
        let count = self.u16()?;
        let atomic = AtomicMessage { region, address, id, op, kind, form, count, ack, values: self.0 };
        let fits = zero == 0
            && count > 0
            && (form == AtomicForm::Plain) == (id == 0)
            && op.is_valid(kind, form)
            && usize::from(count) * kind.size() <= crate::config::MAX_ATOMIC_BYTES as usize
            && self.0.len() == atomic.values_len();
        fits.then_some(atomic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const REMOTE: Remote = Remote { address: 0x1122, rkey: 0x3344 };

    fn all() -> Vec<Frame<'static>> {
        let region = RemoteRegion {
            region: 7,
            remote: REMOTE,
            base: 5,
            len: 9,
            access: Access::Write,
            told: Told { of_writes: true, of_reads: false },
        };
        let run = |count, size, usage| ReceiveRun { count, size, usage };
        let more = vec![run(3, 2048, ReceiveUse::NoPayload); MORE_RUNS];
        let atomic = AtomicMessage {
            region: 7,
            address: 8,
            id: 9,
            op: AtomicOp::MaskedSwap,
            kind: AtomicType::U16,
            form: AtomicForm::Compare,
            count: 2,
            ack: AckRequest::Wanted,
            values: &[1, 2, 3, 4, 5, 6, 7, 8],
        };
        let label = Label::Tagged(u64::MAX);
        let data = Some(4);
        let messages = [
            Message::Eager { label, data, ack: AckRequest::Wanted, payload: b"bytes" },
            Message::Eager { label: Label::Message, data: None, ack: AckRequest::No, payload: b"" },
            Message::Announce { label, data, id: 1, len: 1 << 40, remote: REMOTE },
            Message::Finish { id: 1, end: AnnounceResult::Failed },
            Message::Finish { id: 1, end: AnnounceResult::Taken },
            Message::Grant { more },
            Message::Grant { more: vec![] },
            Message::KeyRequest { key: 3 },
            Message::Key { key: 3, region: Some(region) },
            Message::Key { key: 3, region: None },
            Message::Revoke { region: 7 },
            Message::Revoked { region: 7 },
            Message::Notify { region: 7, what: Notice::Read, len: 3, data },
            Message::Notify { region: 7, what: Notice::Written, len: 3, data: None },
            Message::Atomic(atomic),
            Message::Result { id: 9, old: b"1234" },
        ];
        let grant = Some(run(64, 16448, ReceiveUse::NoPayload));
        messages.map(|message| Frame { number: u32::MAX, acked: 2, grant, message }).into()
    }

    fn bytes(frame: &Frame<'_>) -> Vec<u8> {
        let mut bytes = frame.header().as_slice().to_vec();
        match &frame.message {
            Message::Eager { payload, .. } => bytes.extend_from_slice(payload),
            Message::Atomic(atomic) => bytes.extend_from_slice(atomic.values),
            Message::Result { old, .. } => bytes.extend_from_slice(old),
            _ => {}
        }
        bytes
    }

    #[test]
    fn written_values_are_read_back() {
        for frame in all() {
            assert_eq!(Frame::parse(&bytes(&frame)), Some(frame));
        }
    }

    #[test]
    fn the_longest_header_has_seventy_bytes() {
        let longest = all().iter().map(|frame| frame.header().as_slice().len()).max();
        assert_eq!(longest, Some(70));
    }

    /// A message with one byte changed is refused, or encodes to the same bytes again.
    #[test]
    fn a_message_that_is_read_means_its_bytes() {
        for frame in all() {
            let original = bytes(&frame);
            for at in 0..original.len() {
                for change in [1, 0x80, 0xff] {
                    let mut changed = original.clone();
                    changed[at] ^= change;
                    if let Some(read) = Frame::parse(&changed) {
                        assert_eq!(bytes(&read), changed, "byte {at} of {frame:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn truncated_and_overlong_input_is_refused() {
        for frame in all() {
            let mut original = bytes(&frame);
            let payload = matches!(frame.message, Message::Eager { .. } | Message::Result { .. });
            for len in 0..original.len() {
                // A KEY without a region is a valid refusal, and a GRANT may be shorter by whole runs.
                let ends_well = payload && len >= frame.header().as_slice().len()
                    || matches!(frame.message, Message::Key { .. }) && len == 28
                    || matches!(frame.message, Message::Grant { .. }) && len >= 20 && (len - 20) % 6 == 0;
                assert_eq!(Frame::parse(&original[..len]).is_some(), ends_well, "{len} bytes of {frame:?}");
            }
            original.push(0);
            assert_eq!(Frame::parse(&original).is_some(), payload);
        }
    }

    /// Computed by hand: a tagged message with data, with number 5, that grants two receives of 2 KiB.
    #[test]
    fn an_eager_message_byte_by_byte() {
        let frame = Frame {
            number: 5,
            acked: 1,
            grant: Some(ReceiveRun { count: 2, size: 2048, usage: ReceiveUse::Anything }),
            message: Message::Eager {
                label: Label::Tagged(0x0102),
                data: Some(3),
                ack: AckRequest::Wanted,
                payload: b"ab",
            },
        };
        let expected = [
            &[2, 1, 7, 0, 5, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 8, 0, 0][..],
            &[2, 1, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0],
            b"ab",
        ]
        .concat();
        assert_eq!(bytes(&frame), expected);
        assert_eq!(EAGER_HEADER as usize + 2, expected.len());
    }
}
