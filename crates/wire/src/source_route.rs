//! The source-route header, in which the source tells the switches on a path where to forward the packet.
//!
//! It lies between the IPv4 header and UDP, outside the ICRC, because switches change it. docs/wire.md describes it;
//! a test compares the two.

use core::net::{Ipv4Addr, Ipv6Addr};

use thiserror::Error;

/// Version of the header.
pub const SOURCE_ROUTE_VERSION: u8 = 1;
/// IPv4 protocol number of a packet with a source-route header: the one for experiments (RFC 3692).
pub const SOURCE_ROUTE_PROTOCOL: u8 = 253;
/// Largest number of entries of a route.
pub const MAX_WAYPOINTS: usize = 63;

/// Bytes before the entries.
const FIXED_LEN: usize = 8;

/// Offsets of the fields.
pub(crate) mod at {
    pub(crate) const NEXT_HEADER: usize = 0;
    pub(crate) const VERSION_FORM: usize = 1;
    pub(crate) const COUNT: usize = 2;
    pub(crate) const LEFT: usize = 3;
    pub(crate) const PATH: usize = 4;
}

/// Form of the entries of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RouteForm {
    /// Addresses of switches to pass, 4 bytes each, with ordinary routing between them.
    Anchors = 1,
    /// Egress port at every switch, 2 bytes each: no decision is left to routing. Each switch overwrites its egress
    /// port with its ingress port, so the entries that arrive are the return path in reverse order.
    Hops = 2,
    /// Segment identifiers as in SRv6 (RFC 8754), 16 bytes each, but in order of travel.
    Segments = 3,
}

impl RouteForm {
    /// Bytes of an entry.
    pub const fn entry_len(self) -> usize {
        match self {
            RouteForm::Anchors => 4,
            RouteForm::Hops => 2,
            RouteForm::Segments => 16,
        }
    }
    /// Bytes of a header with that many entries, padded to a multiple of 4.
    pub const fn header_len(self, entries: usize) -> usize {
        FIXED_LEN + (entries * self.entry_len()).next_multiple_of(4)
    }
    fn from_code(code: u8) -> Option<Self> {
        [RouteForm::Anchors, RouteForm::Hops, RouteForm::Segments]
            .into_iter()
            .find(|form| *form as u8 == code)
    }
}

/// Entries of a route, first waypoint first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waypoints<'a> {
    /// See [`RouteForm::Anchors`].
    Anchors(&'a [Ipv4Addr]),
    /// See [`RouteForm::Hops`].
    Hops(&'a [u16]),
    /// See [`RouteForm::Segments`].
    Segments(&'a [Ipv6Addr]),
}

impl Waypoints<'_> {
    /// Form of the entries.
    pub const fn form(&self) -> RouteForm {
        match self {
            Waypoints::Anchors(_) => RouteForm::Anchors,
            Waypoints::Hops(_) => RouteForm::Hops,
            Waypoints::Segments(_) => RouteForm::Segments,
        }
    }
    /// Number of entries.
    pub const fn len(&self) -> usize {
        match self {
            Waypoints::Anchors(list) => list.len(),
            Waypoints::Hops(list) => list.len(),
            Waypoints::Segments(list) => list.len(),
        }
    }
    /// Returns true if there are no entries.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Error in a source-route header, or in the values given for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RouteError {
    /// The bytes end inside the header, or the buffer is too small for it.
    #[error("a source route of {needed} bytes, {available} are there")]
    Truncated {
        /// Bytes that the header takes.
        needed: usize,
        /// Bytes available.
        available: usize,
    },
    /// The header has another version.
    #[error("source route version is {0}, expected 1")]
    Version(u8),
    /// The form is not defined in this version.
    #[error("source route form is {0}, expected 1 (anchors), 2 (hops) or 3 (segments)")]
    Form(u8),
    /// The number of entries is 0 or above [`MAX_WAYPOINTS`].
    #[error("source route of {0} entries, expected 1 to 63")]
    Count(usize),
    /// The header has more entries left than entries.
    #[error("source route has {left} entries left of {count}")]
    Left {
        /// Value in the header.
        left: u8,
        /// Value in the header.
        count: u8,
    },
    /// Padding that is not 0.
    #[error("source route is filled up with {0:#x}, expected 0")]
    Fill(u16),
}

/// Writes a header with all its entries left to pass. Returns its length.
///
/// # Errors
/// [`RouteError::Count`] and [`RouteError::Truncated`].
pub fn emit_source_route(
    next_header: u8,
    path: u32,
    waypoints: Waypoints<'_>,
    out: &mut [u8],
) -> Result<usize, RouteError> {
    let (form, count) = (waypoints.form(), waypoints.len());
    if !(1..=MAX_WAYPOINTS).contains(&count) {
        return Err(RouteError::Count(count));
    }
    let (needed, available) = (form.header_len(count), out.len());
    let out = out.get_mut(..needed).ok_or(RouteError::Truncated { needed, available })?;
    out.fill(0);
    out[at::NEXT_HEADER] = next_header;
    out[at::VERSION_FORM] = SOURCE_ROUTE_VERSION << 4 | form as u8;
    out[at::COUNT] = count as u8;
    out[at::LEFT] = count as u8;
    out[at::PATH..FIXED_LEN].copy_from_slice(&path.to_be_bytes());
    let places = out[FIXED_LEN..].chunks_exact_mut(form.entry_len());
    match waypoints {
        Waypoints::Anchors(list) => {
            places.zip(list).for_each(|(place, anchor)| place.copy_from_slice(&anchor.octets()));
        }
        Waypoints::Hops(list) => {
            places.zip(list).for_each(|(place, port)| place.copy_from_slice(&port.to_be_bytes()));
        }
        Waypoints::Segments(list) => {
            places.zip(list).for_each(|(place, segment)| place.copy_from_slice(&segment.octets()));
        }
    }
    Ok(needed)
}

/// One entry of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waypoint {
    /// Address of a switch to pass.
    Anchor(Ipv4Addr),
    /// Port of a switch: the egress port before the packet passes the switch, the ingress port after.
    Hop(u16),
    /// Segment identifier.
    Segment(Ipv6Addr),
}

/// A checked header. No accessor can fail, except [`entry`](SourceRoute::entry).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceRoute<'a> {
    form: RouteForm,
    bytes: &'a [u8],
}

impl<'a> SourceRoute<'a> {
    /// Checks the header at the start of `bytes`. Bytes behind the header are ignored.
    ///
    /// # Errors
    /// [`RouteError`] names the first field that is wrong.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, RouteError> {
        let available = bytes.len();
        let cut = |needed| RouteError::Truncated { needed, available };
        let fixed = bytes.get(..FIXED_LEN).ok_or(cut(FIXED_LEN))?;
        let (version, code) = (fixed[at::VERSION_FORM] >> 4, fixed[at::VERSION_FORM] & 15);
        if version != SOURCE_ROUTE_VERSION {
            return Err(RouteError::Version(version));
        }
        let form = RouteForm::from_code(code).ok_or(RouteError::Form(code))?;
        let (count, left) = (fixed[at::COUNT], fixed[at::LEFT]);
        if !(1..=MAX_WAYPOINTS).contains(&usize::from(count)) {
            return Err(RouteError::Count(count.into()));
        }
        if left > count {
            return Err(RouteError::Left { left, count });
        }
        let len = form.header_len(count.into());
        let bytes = bytes.get(..len).ok_or(cut(len))?;
        match bytes[FIXED_LEN + usize::from(count) * form.entry_len()..] {
            [a, b] if (a, b) != (0, 0) => Err(RouteError::Fill(u16::from_be_bytes([a, b]))),
            _ => Ok(SourceRoute { form, bytes }),
        }
    }

    /// Form of the entries.
    pub fn form(&self) -> RouteForm {
        self.form
    }
    /// Protocol behind the header: 17 for UDP.
    pub fn next_header(&self) -> u8 {
        self.bytes[at::NEXT_HEADER]
    }
    /// Number of the path, unique within its pair of hosts or globally.
    pub fn path(&self) -> u32 {
        let path = self.bytes[at::PATH..].first_chunk().expect("checked when parsed");
        u32::from_be_bytes(*path)
    }
    /// Number of entries.
    #[expect(clippy::len_without_is_empty, reason = "a route is never empty")]
    pub fn len(&self) -> usize {
        self.bytes[at::COUNT].into()
    }
    /// Number of entries yet to be passed.
    pub fn remaining(&self) -> usize {
        self.bytes[at::LEFT].into()
    }
    /// Bytes of the header.
    pub fn header_len(&self) -> usize {
        self.bytes.len()
    }
    /// Returns entry `i` in order of travel. Panics unless `i < len()`.
    pub fn entry(&self, i: usize) -> Waypoint {
        assert!(i < self.len(), "entry {i} of {}", self.len());
        let bytes = &self.bytes[FIXED_LEN + i * self.form.entry_len()..];
        let whole = "an entry, since all were counted when parsed";
        match self.form {
            RouteForm::Anchors => Waypoint::Anchor(Ipv4Addr::from(*bytes.first_chunk::<4>().expect(whole))),
            RouteForm::Hops => Waypoint::Hop(u16::from_be_bytes(*bytes.first_chunk().expect(whole))),
            RouteForm::Segments => {
                Waypoint::Segment(Ipv6Addr::from(*bytes.first_chunk::<16>().expect(whole)))
            }
        }
    }
    /// Returns the next waypoint, or `None` once all have been passed.
    pub fn next(&self) -> Option<Waypoint> {
        (self.remaining() > 0).then(|| self.entry(self.len() - self.remaining()))
    }
    /// Iterates over all entries, last one first. With hops that have all been passed, this is the return path.
    pub fn backwards(self) -> impl Iterator<Item = Waypoint> + use<'a> {
        (0..self.len()).rev().map(move |i| self.entry(i))
    }
}

/// Applies the operation of a switch to the header at the start of `bytes`, when the packet has reached a waypoint.
///
/// Returns the entry that was next: with hops, the port to send to, which the header then replaces by `ingress`.
/// Returns `None` and changes nothing if all entries had been passed.
///
/// # Errors
/// As [`SourceRoute::parse`].
pub fn pass_waypoint(bytes: &mut [u8], ingress: u16) -> Result<Option<Waypoint>, RouteError> {
    let route = SourceRoute::parse(bytes)?;
    let Some(next) = route.next() else { return Ok(None) };
    let (form, index) = (route.form, route.len() - route.remaining());
    bytes[at::LEFT] -= 1;
    if form == RouteForm::Hops {
        let place = FIXED_LEN + index * form.entry_len();
        bytes[place..place + 2].copy_from_slice(&ingress.to_be_bytes());
    }
    Ok(Some(next))
}
