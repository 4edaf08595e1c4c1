//! The axes, the areas and the legend.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::columns::{Band, bands};
use super::frame::{AXIS, Frame};
use super::{Point, hatch, text};

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(super) type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// The grid of the bytes, and both axes with their numbers and names.
pub(super) fn axes(area: &Area<'_>, frame: &Frame) -> Drawn {
    let (width, height) = frame.size;
    let unit = frame.unit.1 as f64;
    let mut chart = ChartBuilder::on(area)
        .margin_top(frame.y.start)
        .margin_right(width as i32 - frame.x.end)
        .margin_bottom(height as i32 - frame.y.end - AXIS)
        .x_label_area_size(AXIS)
        .y_label_area_size(frame.x.start)
        .build_cartesian_2d(0..frame.operations, 0.0..frame.most / unit)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .bold_line_style(BLACK.mix(0.2))
        .light_line_style(TRANSPARENT)
        .axis_style(BLACK.stroke_width(2))
        .label_style(text::style(text::SIZE, HPos::Center))
        .x_labels(frame.x.len() / 150)
        .y_labels(7)
        .y_label_formatter(&|value| number(*value))
        .draw()?;
    names(area, frame)
}

/// The names of the axes.
fn names(area: &Area<'_>, frame: &Frame) -> Drawn {
    let style = text::style(text::SIZE, HPos::Center);
    let below = ((frame.x.start + frame.x.end) / 2, frame.y.end + AXIS - 22);
    area.draw(&Text::new("operation", below, style.clone()))?;
    let name = format!("live memory, {}", frame.unit.0);
    let beside = (text::MARGIN, (frame.y.start + frame.y.end) / 2);
    area.draw(&Text::new(
        name,
        beside,
        style.transform(FontTransform::Rotate270),
    ))
}

/// Up to three decimals, as few as there are.
fn number(value: f64) -> String {
    ((value * 1000.0).round() / 1000.0).to_string()
}

/// The rows that occur, stacked.
pub(super) fn areas(area: &Area<'_>, frame: &Frame, points: &[Point]) -> Drawn {
    for (row, outline) in bands(points, frame) {
        if frame.legend.iter().any(|(shown, _)| *shown == row) {
            band(area, &outline, hatch::look(row))?;
        }
    }
    Ok(())
}

fn band(area: &Area<'_>, band: &Band, look: hatch::Look) -> Drawn {
    area.draw(&Polygon::new(band.outline(), look.color.filled()))?;
    let thin = BLACK.mix(0.6).stroke_width(2);
    for line in look.hatches.iter().flat_map(|h| hatch::lines(band, *h)) {
        area.draw(&PathElement::new(line, thin))?;
    }
    // Thin: a step that goes up and down would become a black area.
    area.draw(&PathElement::new(band.top(), BLACK.stroke_width(1)))
}

/// What the rows look like, in the order of the stack.
pub(super) fn legend(area: &Area<'_>, frame: &Frame) -> Drawn {
    let style = text::style(text::SIZE, HPos::Left);
    if let Some((_, (_, y))) = frame.legend.first() {
        area.draw(&Text::new(text::LEGEND, (text::MARGIN, *y), style.clone()))?;
    }
    for (row, (x, y)) in &frame.legend {
        let swatch = Band::rectangle(*x..x + text::SWATCH, y - 15..y + 15);
        let mut outline = swatch.outline();
        outline.extend(outline.first().copied());
        band(area, &swatch, hatch::look(*row))?;
        area.draw(&PathElement::new(outline, BLACK.stroke_width(2)))?;
        let name = (x + text::SWATCH + text::GAP, *y);
        area.draw(&Text::new(row.name(), name, style.clone()))?;
    }
    Ok(())
}
