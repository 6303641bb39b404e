//! Backend of plotters that draws pixels with anti-aliasing. The bitmap backend of plotters has none, and rendering
//! the SVG needs a text stack that took a tenth of the program's build time.

use std::convert::Infallible;

use plotters::style::{IntoFont, TextStyle};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
};
use tiny_skia::{
    Color, FillRule, LineJoin, Paint, Path, PathBuilder, Pixmap, PremultipliedColorU8, Rect, Stroke,
    Transform,
};

/// Pixels per point.
const ZOOM: u32 = 2;

/// Picture of [`ZOOM`] pixels per point.
pub(crate) struct Pixels {
    map: Map,
}

type Drawn = Result<(), DrawingErrorKind<Infallible>>;

impl Pixels {
    /// Creates a white picture. `None` if it has no area, or is larger than [`MAX_COORDINATE`] points.
    pub(crate) fn new((width, height): (u32, u32)) -> Option<Self> {
        if width.max(height) > MAX_COORDINATE.unsigned_abs() {
            return None;
        }
        let mut pixmap = Pixmap::new(width * ZOOM, height * ZOOM)?;
        pixmap.fill(Color::WHITE);
        Some(Pixels { map: Map(pixmap) })
    }

    pub(crate) fn png(&self) -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
        Ok(self.map.0.encode_png()?)
    }

    fn fill(&mut self, path: Option<Path>, color: BackendColor) -> Drawn {
        if let Some(path) = path {
            self.map.0.fill_path(&path, &paint(color), FillRule::Winding, Transform::identity(), None);
        }
        Ok(())
    }

    fn stroke<S: BackendStyle>(&mut self, path: Option<Path>, style: &S) -> Drawn {
        let width = style.stroke_width().min(MAX_LINE_WIDTH) as f32 * ZOOM as f32;
        let stroke = Stroke { width, line_join: LineJoin::Round, ..Stroke::default() };
        if let Some(path) = path {
            self.map.0.stroke_path(&path, &paint(style.color()), &stroke, Transform::identity(), None);
        }
        Ok(())
    }
}

fn paint(color: BackendColor) -> Paint<'static> {
    let (r, g, b) = color.rgb;
    let mut paint = Paint { anti_alias: true, ..Paint::default() };
    paint.set_color_rgba8(r, g, b, (color.alpha * 255.0).round() as u8);
    paint
}

/// Largest coordinate in points. Plotters passes coordinates of the full integer range, while tiny-skia computes
/// quarter pixels in 16 bits, so that a shape may extend to 8,191 pixels only.
const MAX_COORDINATE: i32 = 3_500;
/// Largest line width in points.
const MAX_LINE_WIDTH: u32 = 500;

/// Converts points to pixels. Coordinates beyond [`MAX_COORDINATE`] are clamped to it, which is outside the picture.
fn zoomed(at: i32) -> f32 {
    at.clamp(-MAX_COORDINATE, MAX_COORDINATE) as f32 * ZOOM as f32
}

/// Returns the far edge of a point in pixels.
fn far_edge(at: i32) -> f32 {
    zoomed(at) + ZOOM as f32
}

fn path(points: impl IntoIterator<Item = BackendCoord>, closed: bool) -> Option<Path> {
    let mut builder = PathBuilder::new();
    for (x, y) in points {
        let (x, y) = (zoomed(x), zoomed(y));
        if builder.is_empty() { builder.move_to(x, y) } else { builder.line_to(x, y) }
    }
    if closed {
        builder.close();
    }
    builder.finish()
}

impl DrawingBackend for &mut Pixels {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        (self.map.0.width() / ZOOM, self.map.0.height() / ZOOM)
    }

    fn ensure_prepared(&mut self) -> Drawn {
        Ok(())
    }

    fn present(&mut self) -> Drawn {
        Ok(())
    }

    fn draw_pixel(&mut self, (x, y): BackendCoord, color: BackendColor) -> Drawn {
        self.draw_rect((x, y), (x, y), &color, true)
    }

    fn draw_line<S: BackendStyle>(&mut self, from: BackendCoord, to: BackendCoord, style: &S) -> Drawn {
        self.stroke(path([from, to], false), style)
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        (left, top): BackendCoord,
        (right, bottom): BackendCoord,
        style: &S,
        fill: bool,
    ) -> Drawn {
        if fill {
            // The end coordinate is inclusive.
            let rect = Rect::from_ltrb(zoomed(left), zoomed(top), far_edge(right), far_edge(bottom));
            return self.fill(rect.map(PathBuilder::from_rect), style.color());
        }
        let corners = [(left, top), (right, top), (right, bottom), (left, bottom)];
        self.stroke(path(corners, true), style)
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        points: I,
        style: &S,
    ) -> Drawn {
        self.stroke(path(points, false), style)
    }

    fn draw_circle<S: BackendStyle>(
        &mut self,
        (x, y): BackendCoord,
        radius: u32,
        style: &S,
        fill: bool,
    ) -> Drawn {
        let radius = radius.min(MAX_LINE_WIDTH);
        let circle = PathBuilder::from_circle(zoomed(x), zoomed(y), radius as f32 * ZOOM as f32);
        if fill { self.fill(circle, style.color()) } else { self.stroke(circle, style) }
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        points: I,
        style: &S,
    ) -> Drawn {
        self.fill(path(points, true), style.color())
    }

    fn draw_text<S: BackendTextStyle>(&mut self, text: &str, style: &S, (x, y): BackendCoord) -> Drawn {
        let family = style.family();
        let font = (family.as_str(), style.size() * f64::from(ZOOM), style.style()).into_font();
        let larger =
            TextStyle { font: font.transform(style.transform()), color: style.color(), pos: style.anchor() };
        // Glyphs are placed around this position. The clamp leaves room so that their coordinates do not overflow.
        let place = |at: i32| at.saturating_mul(ZOOM as i32).clamp(i32::MIN / 2, i32::MAX / 2);
        (&mut self.map).draw_text(text, &larger, (place(x), place(y)))
    }
}

/// Pixel buffer for glyphs, which plotters anti-aliases itself.
struct Map(Pixmap);

impl DrawingBackend for &mut Map {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        (self.0.width(), self.0.height())
    }

    fn ensure_prepared(&mut self) -> Drawn {
        Ok(())
    }

    fn present(&mut self) -> Drawn {
        Ok(())
    }

    fn draw_pixel(&mut self, (x, y): BackendCoord, color: BackendColor) -> Drawn {
        let (width, height) = (self.0.width(), self.0.height());
        let within = |at: i32, size: u32| u32::try_from(at).ok().filter(|at| *at < size);
        let inside = within(x, width).zip(within(y, height));
        let pixel = inside.and_then(|(x, y)| self.0.pixels_mut().get_mut((y * width + x) as usize));
        if let Some(pixel) = pixel {
            let over = |under: u8, ink: u8| {
                (f64::from(under) + color.alpha * (f64::from(ink) - f64::from(under))).round() as u8
            };
            let (r, g, b) = color.rgb;
            let mixed = [over(pixel.red(), r), over(pixel.green(), g), over(pixel.blue(), b)];
            // The background is white, so every pixel is opaque.
            *pixel = PremultipliedColorU8::from_rgba(mixed[0], mixed[1], mixed[2], u8::MAX).unwrap_or(*pixel);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use plotters::prelude::*;
    use plotters_backend::BackendColor;
    use tiny_skia::Pixmap;

    use super::{Map, Pixels};
    use crate::paper::picture::{FONT, prepare_fonts};

    #[test]
    fn shapes_are_where_they_should_be() {
        let mut pixels = Pixels::new((10, 10)).expect("a size");
        {
            let root = (&mut pixels).into_drawing_area();
            root.draw(&Rectangle::new([(2, 2), (5, 5)], BLACK.filled())).unwrap();
            root.draw(&Circle::new((8, 8), 1, RED.mix(0.5).filled())).unwrap();
            root.draw(&PathElement::new([(0, 9), (5, 9)], BLUE.stroke_width(1))).unwrap();
        }
        let at = |x: u32, y: u32| {
            let pixel = pixels.map.0.pixel(x, y).expect("inside");
            (pixel.red(), pixel.green(), pixel.blue())
        };
        assert_eq!(at(3, 3), (255, 255, 255));
        assert_eq!((at(4, 4), at(11, 11)), ((0, 0, 0), (0, 0, 0)));
        assert_eq!(at(12, 12), (255, 255, 255));
        assert_eq!(at(16, 16), (255, 127, 127));
        assert_eq!(at(4, 18), (0, 0, 255));
        assert_eq!(at(4, 15), (255, 255, 255));
        assert!(pixels.png().unwrap().starts_with(b"\x89PNG"));
    }

    #[test]
    fn nothing_outside_is_drawn() {
        let mut map = Map(Pixmap::new(2, 2).expect("a size"));
        let ink = BackendColor { alpha: 1.0, rgb: (1, 2, 3) };
        for at in [(-1, 0), (2, 0), (0, -1), (0, 2), (0, i32::MAX), (i32::MAX, i32::MAX)] {
            (&mut map).draw_pixel(at, ink).unwrap();
        }
        assert!(map.0.data().iter().all(|byte| *byte == 0));
    }

    #[test]
    fn coordinates_and_sizes_may_be_anything() {
        prepare_fonts();
        let mut pixels = Pixels::new((10, 10)).expect("a size");
        {
            let root = (&mut pixels).into_drawing_area();
            let ends = [i32::MIN, i32::MIN / 2, -1, 5, i32::MAX / 2, i32::MAX];
            for (from, to) in ends.iter().flat_map(|from| ends.map(|to| (*from, to))) {
                root.draw(&Rectangle::new([(from, from), (to, to)], BLACK.filled())).unwrap();
                root.draw(&Rectangle::new([(from, to), (to, from)], BLACK.stroke_width(u32::MAX))).unwrap();
                root.draw(&PathElement::new([(from, from), (to, to)], BLACK.stroke_width(1))).unwrap();
                root.draw(&Polygon::new([(from, to), (to, to), (to, from)], BLACK.filled())).unwrap();
                root.draw(&Text::new("here", (from, to), (FONT, 10))).unwrap();
            }
            root.draw(&Circle::new((5, 5), u32::MAX, BLACK.filled())).unwrap();
        }
        // This rectangle covers the whole picture.
        let root = (&mut pixels).into_drawing_area();
        root.draw(&Rectangle::new([(i32::MIN, i32::MIN), (i32::MAX, i32::MAX)], RED.filled())).unwrap();
        drop(root);
        assert!(pixels.map.0.pixels().iter().all(|pixel| (pixel.red(), pixel.green()) == (255, 0)));
        assert!(Pixels::new((u32::MAX, 1)).is_none() && Pixels::new((0, 1)).is_none());
    }
}
