//! Division of a message over the queue pairs of its connection.

use pathweave_transport::part_bytes;

/// The part of a message that one queue pair carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessagePart {
    /// Offset of the part in the message, in bytes.
    pub offset: u64,
    /// Length of the part in bytes.
    pub len: u64,
}

/// Divides a message of `size` bytes over `queue_pairs` queue pairs, in their order. If the message has fewer bytes
/// than there are queue pairs, the last ones carry nothing.
pub fn shares(size: u64, queue_pairs: usize) -> impl ExactSizeIterator<Item = MessagePart> {
    let parts = (queue_pairs as u64).min(size.max(1)) as u32;
    let mut offset = 0;
    (0..parts).map(move |part| {
        let len = part_bytes(size, u64::from(part), u64::from(parts));
        offset += len;
        MessagePart { offset: offset - len, len }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_a_message_without_gaps() {
        let of = |size, queue_pairs| -> Vec<(u64, u64)> {
            shares(size, queue_pairs).map(|share| (share.offset, share.len)).collect()
        };
        assert_eq!(of(10, 1), [(0, 10)]);
        assert_eq!(of(10, 4).iter().map(|(_, len)| len).sum::<u64>(), 10);
        assert!(of(10, 4).windows(2).all(|pair| pair[0].0 + pair[0].1 == pair[1].0));
        assert_eq!(of(2, 4), [(0, 1), (1, 1)], "two queue pairs stay idle");
        assert_eq!(of(0, 4), [(0, 0)], "an empty message is one packet");
    }
}
