//! Body of an HTTP response: a text, or a file that is read as it is sent.

use std::fs::File;
use std::io::{self, Read};
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};

/// Number of bytes read at a time.
const PIECE: u64 = 1 << 16;

/// Content of a response.
pub(super) enum Content {
    Text(Option<Bytes>),
    /// File, and the number of its bytes that remain to be sent.
    File(File, u64),
}

impl Content {
    pub(super) fn text(text: impl Into<Bytes>) -> Self {
        Content::Text(Some(text.into()))
    }
}

impl Body for Content {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        Poll::Ready(match self.get_mut() {
            Content::Text(text) => text.take().map(|text| Ok(Frame::data(text))),
            Content::File(_, 0) => None,
            Content::File(file, left) => {
                let mut piece = vec![0; (*left).min(PIECE) as usize];
                Some(file.read_exact(&mut piece).map(|()| {
                    *left -= piece.len() as u64;
                    Frame::data(Bytes::from(piece))
                }))
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Content::Text(None) | Content::File(_, 0))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(match self {
            Content::Text(text) => text.as_ref().map_or(0, |text| text.len() as u64),
            Content::File(_, left) => *left,
        })
    }
}
