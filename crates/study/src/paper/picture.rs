//! Pictures that are drawn once and written as SVG and PNG.

use std::sync::Once;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::{FontStyle, register_font};

use crate::paper::pixels::Pixels;

pub(crate) const FONT: &str = "sans-serif";

pub(crate) type DrawError = Box<dyn std::error::Error + Send + Sync>;
pub(crate) type Area<B> = DrawingArea<B, Shift>;

/// Drawing backend whose errors can be shown to the user.
pub(crate) trait Backend: DrawingBackend<ErrorType: 'static> {}

impl<B: DrawingBackend<ErrorType: 'static>> Backend for B {}

/// Drawing of a known size.
pub(crate) trait Picture {
    /// Returns width and height in points.
    fn size(&self) -> (u32, u32);

    /// Draws the picture on an area of that size.
    fn draw<B: Backend>(&self, root: &Area<B>) -> Result<(), DrawError>;
}

/// Picture in both formats.
pub(crate) struct RenderedPicture {
    pub(crate) svg: String,
    pub(crate) png: Vec<u8>,
}

impl RenderedPicture {
    pub(crate) fn new(picture: &impl Picture) -> Result<Self, DrawError> {
        Ok(RenderedPicture { svg: svg(picture)?, png: png(picture)? })
    }
}

pub(crate) fn svg(picture: &impl Picture) -> Result<String, DrawError> {
    let mut text = String::new();
    draw(picture, SVGBackend::with_string(&mut text, picture.size()))?;
    Ok(text)
}

/// Renders the picture as PNG, at two pixels per point.
fn png(picture: &impl Picture) -> Result<Vec<u8>, DrawError> {
    let mut pixels = Pixels::new(picture.size()).ok_or("the picture has no size")?;
    draw(picture, &mut pixels)?;
    pixels.png()
}

fn draw<B: Backend>(picture: &impl Picture, backend: B) -> Result<(), DrawError> {
    prepare_fonts();
    let root = backend.into_drawing_area();
    root.fill(&WHITE)?;
    picture.draw(&root)?;
    Ok(root.present()?)
}

pub(crate) fn prepare_fonts() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for style in [FontStyle::Normal, FontStyle::Bold] {
            // A font that cannot be read would be visible in every picture, so the error is ignored.
            let _ = register_font(FONT, style, epaint_default_fonts::UBUNTU_LIGHT);
        }
    });
}
