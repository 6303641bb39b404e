//! Checks of a data packet: consistency, permission, and the position of its payload.

use pathweave_wire::{Data, Operation};

use super::{Consumed, ReceiveStream};
use crate::config::ReceiveMode;
use crate::memory::{AccessIdentity, Memory};
use crate::send::SendStream;
use crate::send::message::read_len;
use crate::transmit::Placement;
use crate::work::MAX_MESSAGE_BYTES;

/// Reason why a packet is not accepted that loss recovery would accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Objection {
    /// The fields contradict each other or the state of the stream.
    Malformed,
    /// No receive is posted, or too many READs are being answered.
    NotReady,
    /// Key, bounds or access are wrong.
    Access,
    /// The message does not fit the receive.
    Length,
}

/// Checks a packet and returns the position for its payload. Changes nothing.
#[inline]
pub(crate) fn examine(
    data: &Data,
    mtu_payload: u16,
    receive: &ReceiveStream,
    send: &SendStream,
    asker: AccessIdentity,
    memory: &mut Memory,
) -> Result<Option<Placement>, Objection> {
    let end = u64::from(data.offset) + u64::from(data.len);
    // Only the last packet of a message may be short.
    if data.len > mtu_payload || (!data.last && data.len != mtu_payload) || end > MAX_MESSAGE_BYTES {
        return Err(Objection::Malformed);
    }
    let place = |buffer, offset| (data.len > 0).then_some(Placement { buffer, offset, len: data.len });
    match data.op {
        Operation::Write | Operation::WriteImm => {
            // Each packet checks the range of the whole message, because any packet may arrive first. No byte is
            // written of a message that does not fit.
            let whole = data.message_bytes();
            if !data.last && end >= whole || whole > MAX_MESSAGE_BYTES {
                return Err(Objection::Malformed);
            }
            let (buffer, start) =
                memory.check_write(asker, data.rkey, data.remote_addr, whole).ok_or(Objection::Access)?;
            let offset = start.saturating_add(data.offset.into());
            if data.op == Operation::WriteImm && data.last && receive.mode == ReceiveMode::Posted {
                let Consumed = match receive.receive(data.receive_index) {
                    Ok(Some(_)) => return Ok(place(buffer, offset)),
                    Ok(None) => return Err(Objection::NotReady),
                    Err(consumed) => consumed,
                };
                return Err(Objection::Malformed);
            }
            Ok(place(buffer, offset))
        }
        Operation::Send | Operation::SendImm => {
            if receive.mode == ReceiveMode::Discard {
                return Ok(None);
            }
            match receive.receive(data.receive_index) {
                Ok(Some(request)) if end <= request.len => Ok(place(request.buffer, u64::from(data.offset))),
                Ok(Some(_)) => Err(Objection::Length),
                Ok(None) => Err(Objection::NotReady),
                Err(Consumed) => Err(Objection::Malformed),
            }
        }
        Operation::ReadRequest => {
            if data.len != 0 || !data.last {
                return Err(Objection::Malformed);
            }
            let len = read_len(data).ok_or(Objection::Malformed)?;
            memory.check_read(asker, data.rkey, data.remote_addr, len).ok_or(Objection::Access)?;
            if receive.reads_in >= receive.max_reads_in { Err(Objection::NotReady) } else { Ok(None) }
        }
        Operation::ReadResponse => {
            let read = send.read(data.remote_addr).ok_or(Objection::Malformed)?;
            if end > read.len || (data.last && end != read.len) {
                return Err(Objection::Malformed);
            }
            Ok(place(read.buffer, u64::from(data.offset)))
        }
    }
}
