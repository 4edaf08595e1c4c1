//! How a row looks: a grey level that a colour gives, and a hatching.

use std::ops::Range;

use plotters::style::RGBColor;

use leanburn_memory::Row;

use super::columns::Band;

/// Between two lines of a hatching, in pixels.
const SPACING: i32 = 16;
/// A shorter piece of a line is a speck.
const SHORTEST: i32 = 5;

/// Parallel lines.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Hatch {
    Upright,
    /// Down by so many pixels per pixel to the right: -1, 0 or 1.
    Sloped(i32),
}

/// The look of a row.
pub(crate) struct Look {
    pub color: RGBColor,
    pub hatches: &'static [Hatch],
}

/// No two rows share a hatching, but for three plain ones of far apart greys.
pub(crate) fn look(row: Row) -> Look {
    use Hatch::{Sloped, Upright};
    let (color, hatches): (_, &[Hatch]) = match row {
        Row::Parameters => ((0x3b, 0x4a, 0x5a), &[]),
        Row::Buffers => ((0xd8, 0xc3, 0xa5), &[Upright]),
        Row::Inputs => ((0xff, 0xff, 0xff), &[]),
        Row::Activations => ((0x9b, 0xc4, 0xe2), &[]),
        Row::Gradients => ((0xf4, 0xa2, 0x61), &[Sloped(-1)]),
        Row::OptimizerState => ((0x8a, 0xb1, 0x7d), &[Sloped(1)]),
        Row::Temporaries => ((0xf6, 0xe5, 0x8d), &[Sloped(0)]),
        Row::Allocator => ((0xe6, 0xe6, 0xe6), &[Sloped(-1), Sloped(1)]),
        Row::Framework => ((0xc3, 0xa6, 0xd1), &[Sloped(0), Upright]),
    };
    Look {
        color: RGBColor(color.0, color.1, color.2),
        hatches,
    }
}

/// The lines of a hatching inside a band.
pub(crate) fn lines(band: &Band, hatch: Hatch) -> Vec<[(i32, i32); 2]> {
    match hatch {
        Hatch::Upright => upright(band),
        Hatch::Sloped(slope) => sloped(band, slope),
    }
}

fn upright(band: &Band) -> Vec<[(i32, i32); 2]> {
    let pixels = (band.left..).zip(band.tops.iter().zip(&band.bottoms));
    let on_grid = pixels.filter(|(x, _)| x % SPACING == 0);
    on_grid
        .filter(|(_, (top, bottom))| *bottom - *top >= SHORTEST)
        .map(|(x, (top, bottom))| [(x, *top), (x, *bottom)])
        .collect()
}

fn sloped(band: &Band, slope: i32) -> Vec<[(i32, i32); 2]> {
    let mut lines = Vec::new();
    for start in starts(band, slope) {
        let mut from = None;
        for index in 0..=band.tops.len() {
            let (x, y) = (band.left + index as i32, start + slope * index as i32);
            let inside = index < band.tops.len() && band.tops[index] < y && y < band.bottoms[index];
            match (inside, from) {
                (true, None) => from = Some((x, y)),
                (false, Some(begin)) => {
                    push_line(&mut lines, [begin, (x, y)]);
                    from = None;
                }
                _ => {}
            }
        }
    }
    lines
}

fn push_line(lines: &mut Vec<[(i32, i32); 2]>, line: [(i32, i32); 2]) {
    if line[1].0 - line[0].0 >= SHORTEST {
        lines.push(line);
    }
}

/// Where the lines that can cross the band are at its left edge, on one grid for all bands.
fn starts(band: &Band, slope: i32) -> impl Iterator<Item = i32> {
    let top = band.tops.iter().min().copied().unwrap_or(0);
    let bottom = band.bottoms.iter().max().copied().unwrap_or(0);
    let rise = slope * band.tops.len() as i32;
    let Range { start, end } = top - rise.max(0)..bottom - rise.min(0);
    let step = if slope == 0 { SPACING / 2 } else { SPACING };
    (start.div_euclid(step) * step..end).step_by(step as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_its_own_look() {
        let looks = Row::ALL.map(look);
        for (index, one) in looks.iter().enumerate() {
            for other in &looks[..index] {
                let plain = one.hatches.is_empty() && other.hatches.is_empty();
                let apart = grey(one.color).abs_diff(grey(other.color)) > 50;
                assert!(one.hatches != other.hatches || (plain && apart));
            }
        }
    }

    fn grey(RGBColor(r, g, b): RGBColor) -> u32 {
        (u32::from(r) * 3 + u32::from(g) * 6 + u32::from(b)) / 10
    }

    #[test]
    fn lines_stay_inside_their_band() {
        let mut band = Band::rectangle(100..400, 200..300);
        band.tops[100..150].fill(290);
        for hatch in [
            Hatch::Upright,
            Hatch::Sloped(-1),
            Hatch::Sloped(0),
            Hatch::Sloped(1),
        ] {
            let lines = lines(&band, hatch);
            assert!(lines.len() > 10, "{hatch:?}");
            for (x, y) in lines.into_iter().flatten() {
                assert!(
                    (100..=400).contains(&x) && (199..=301).contains(&y),
                    "{x} {y}"
                );
                assert!(
                    !(201..250).contains(&x) || y >= 290 - 1,
                    "{hatch:?} {x} {y}"
                );
            }
        }
    }
}
