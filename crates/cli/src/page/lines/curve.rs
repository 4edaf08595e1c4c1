//! The points of a series in pixels, and the line through them.

use super::frame::Frame;
use super::{Series, look};
use crate::page::canvas::{At, Canvas, Drawn};
use crate::page::dash::dashes;

/// Between two symbols on a line of many points, in pixels.
const APART: f64 = 110.0;
/// So many points have a symbol each.
const FEW: usize = 25;

/// A part of a line between two gaps.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Piece {
    /// The points, or the mean of each column of pixels.
    pub line: Vec<At>,
    /// The highest and the lowest point of each column, where a column has several points.
    pub span: Option<[Vec<At>; 2]>,
}

impl Piece {
    /// All points that are drawn.
    pub fn dots(&self) -> impl Iterator<Item = At> + '_ {
        let span = self.span.iter().flatten().flatten();
        self.line.iter().chain(span).copied()
    }
}

/// The parts of the line.
pub(super) fn pieces(series: &Series, frame: &Frame) -> Vec<Piece> {
    let known = series.points.iter().copied().filter(|(x, _)| x.is_finite());
    let mut points: Vec<At> = known.collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let pixels = points.iter().map(|point| frame.place(*point));
    let pixels: Vec<(f64, Option<f64>)> = pixels.collect();
    if super::data::is_dense(series, frame.size.0) {
        return reduced(&pixels, frame.x[1]);
    }
    let parts = pixels.split(|(_, y)| y.is_none());
    let lines = parts.map(|part| part.iter().filter_map(|(x, y)| Some((*x, (*y)?))).collect());
    let lines = lines.filter(|line: &Vec<At>| !line.is_empty());
    lines.map(|line| Piece { line, span: None }).collect()
}

/// Each column of pixels as one point. A column with a point hides its gaps, which are narrower
/// than a pixel.
fn reduced(pixels: &[(f64, Option<f64>)], right: f64) -> Vec<Piece> {
    // The last point has no column of its own.
    let column = |x: f64| x.floor().min(right.ceil() - 1.0);
    let columns = pixels.chunk_by(|a, b| column(a.0) == column(b.0));
    let mut pieces: Vec<Piece> = Vec::new();
    let mut gap = true;
    for points in columns {
        let known: Vec<f64> = points.iter().filter_map(|(_, y)| *y).collect();
        let Some(highest) = known.iter().copied().reduce(f64::min) else {
            gap = true;
            continue;
        };
        if gap {
            pieces.push(Piece {
                line: Vec::new(),
                span: Some([Vec::new(), Vec::new()]),
            });
            gap = false;
        }
        let x = column(points[0].0) + 0.5;
        let lowest = known.iter().copied().fold(highest, f64::max);
        let mean = known.iter().sum::<f64>() / known.len() as f64;
        if let Some(Piece { line, span }) = pieces.last_mut() {
            line.push((x, mean));
            if let Some([tops, bottoms]) = span {
                tops.push((x, highest));
                bottoms.push((x, lowest));
            }
        }
    }
    pieces
}

/// The spans of a line, which lie below all lines.
pub(super) fn spans(canvas: &Canvas<'_>, pieces: &[Piece], index: usize) -> Drawn {
    let color = look::series(index).color;
    for [tops, bottoms] in pieces.iter().filter_map(|piece| piece.span.as_ref()) {
        let around: Vec<At> = tops.iter().chain(bottoms.iter().rev()).copied().collect();
        canvas.area(&around, color, 0.25)?;
        // A single column has no area.
        canvas.line(&around, look::pale(color), 0.5)?;
    }
    Ok(())
}

/// The line with number `index` of `lines`, drawn from `points` points.
pub(super) fn line(
    canvas: &Canvas<'_>,
    pieces: &[Piece],
    index: usize,
    lines: usize,
    points: usize,
) -> Drawn {
    let look = look::series(index);
    for piece in pieces {
        for dash in dashes(&piece.line, look.dash) {
            canvas.line(&dash, look.color, look::THICK)?;
        }
        // Alone between two gaps.
        if let [point] = piece.line[..] {
            canvas.circle(point, look::THICK, look.color)?;
        }
    }
    let few = points <= FEW;
    if !few && lines < 2 {
        return Ok(());
    }
    // Side by side, so that lines that lie on each other can be told apart.
    let offset = APART * (index % 6) as f64 / lines.min(6) as f64;
    let mut next = None;
    for point in pieces.iter().flat_map(|piece| &piece.line) {
        if few || point.0 >= *next.get_or_insert(point.0 + offset + 12.0) {
            look::symbol(canvas, look.symbol, *point, look.color)?;
            next = Some(point.0 + APART);
        }
    }
    Ok(())
}
