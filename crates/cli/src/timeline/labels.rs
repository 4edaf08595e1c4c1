//! The words: title, phases, blocks, budget and peak. None lies on another.

use std::ops::Range;

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use leanburn_memory::{Bytes, Phase};

use super::chart::{Area, Drawn};
use super::frame::Frame;
use super::text::{self, GAP, MARGIN, SIZE};

const TITLE_Y: i32 = 34;
const PHASE_Y: i32 = 80;
const BRACKET_Y: i32 = 102;
const MARK_Y: i32 = 128;
/// At most so many blocks are named.
const MARKS: i32 = 12;
const MARK_ROOM: i32 = 220;
/// Half the height of a label.
const HALF: i32 = 20;

pub(super) fn title(area: &Area<'_>, title: &str) -> Drawn {
    let room = area.dim_in_pixel().0 as i32 - 2 * MARGIN;
    let title = text::fit(title, text::TITLE_SIZE, room);
    let style = text::style(text::TITLE_SIZE, HPos::Left);
    area.draw(&Text::new(title, (MARGIN, TITLE_Y), style))
}

/// A bracket over each phase with its name, and a line between phases.
pub(super) fn phases(area: &Area<'_>, frame: &Frame, phases: &[(Phase, Range<usize>)]) -> Drawn {
    let spans: Vec<(&str, Range<i32>)> = phases
        .iter()
        .map(|(phase, span)| (phase.name(), frame.at(span.start)..frame.at(span.end)))
        .filter(|(_, span)| !span.is_empty())
        .collect();
    let thin = BLACK.stroke_width(2);
    for (_, Range { start, end }) in &spans {
        let (left, right) = (start + 2, end - 2);
        let ends = [
            (left, BRACKET_Y + 8),
            (left, BRACKET_Y),
            (right, BRACKET_Y),
            (right, BRACKET_Y + 8),
        ];
        area.draw(&PathElement::new(ends, thin))?;
        if *start > frame.x.start {
            let line = [(*start, frame.y.start), (*start, frame.y.end)];
            area.draw(&PathElement::new(line, thin))?;
        }
    }
    for (name, left) in spread(&spans, &frame.x) {
        area.draw(&Text::new(
            name,
            (left, PHASE_Y),
            text::style(SIZE, HPos::Left),
        ))?;
    }
    Ok(())
}

/// Names over their spans, moved aside where they would meet; where they are too many, those of
/// spans too short for them are left out.
fn spread<'a>(spans: &[(&'a str, Range<i32>)], x: &Range<i32>) -> Vec<(&'a str, i32)> {
    let width = |name: &str| text::width(name, SIZE) + GAP;
    let all: i32 = spans.iter().map(|(name, _)| width(name)).sum();
    let fits = |(name, span): &&(&str, Range<i32>)| {
        all <= x.len() as i32 || span.len() as i32 >= width(name)
    };
    let mut end = x.start;
    let mut placed: Vec<(&str, i32)> = Vec::new();
    for (name, span) in spans.iter().filter(fits) {
        let left = ((span.start + span.end - width(name)) / 2).max(end);
        end = left + width(name);
        placed.push((name, left));
    }
    let mut limit = x.end;
    for (name, left) in placed.iter_mut().rev() {
        *left = (*left).min(limit - width(name));
        limit = *left;
    }
    placed
}

/// A line down from each block's first operation, and its label beside it.
pub(super) fn marks(area: &Area<'_>, frame: &Frame, marks: &[(usize, String)]) -> Drawn {
    let mut free = frame.x.start;
    for (operation, label) in marks {
        let x = frame.at(*operation);
        let label = text::fit(label, SIZE, MARK_ROOM);
        let end = x + GAP / 2 + text::width(&label, SIZE);
        if x < free || end > area.dim_in_pixel().0 as i32 || *operation >= frame.operations {
            continue;
        }
        let line = [(x, MARK_Y - HALF / 2), (x, frame.y.end)];
        area.draw(&PathElement::new(line, BLACK.mix(0.35).stroke_width(1)))?;
        let style = text::style(SIZE, HPos::Left);
        area.draw(&Text::new(label, (x + GAP / 2, MARK_Y), style))?;
        free = (end + GAP).max(x + frame.x.len() as i32 / MARKS);
    }
    Ok(())
}

/// A dashed line and its label on the side where the peak isn't.
pub(super) fn budget(area: &Area<'_>, frame: &Frame) -> Drawn {
    let Some(budget) = frame.budget else {
        return Ok(());
    };
    let line = frame.budget_line();
    if let Some(y) = line {
        for x in frame.x.clone().step_by(24) {
            let dash = [(x, y), ((x + 14).min(frame.x.end), y)];
            area.draw(&PathElement::new(dash, BLACK.stroke_width(4)))?;
        }
    }
    let (text, y) = match line {
        Some(y) => (format!("budget {budget}"), y - HALF - 6),
        None => (
            format!("budget {budget}, above the scale"),
            frame.y.start + HALF + 6,
        ),
    };
    let half = text::width(&text, SIZE) / 2 + GAP;
    let x = if peak_is_left(frame) {
        frame.x.end - half
    } else {
        frame.x.start + half
    };
    boxed(area, &text, (x, y))
}

fn peak_is_left(frame: &Frame) -> bool {
    frame.peak_pixel().0 < middle(frame)
}

fn middle(frame: &Frame) -> i32 {
    (frame.x.start + frame.x.end) / 2
}

/// A dot on the peak, and above it its bytes and phase.
pub(super) fn peak(area: &Area<'_>, frame: &Frame, phases: &[(Phase, Range<usize>)]) -> Drawn {
    let (operation, bytes) = frame.peak;
    let phase = phases.iter().find(|(_, span)| span.contains(&operation));
    let phase = phase.map(|(phase, _)| *phase);
    let (x, y) = frame.peak_pixel();
    let Range { start, end } = peak_room(frame, &peak_text(bytes, phase));
    let fits = |text: &String| text::width(text, SIZE) + 2 * GAP <= end - start;
    let with_phase = Some(peak_text(bytes, phase)).filter(fits);
    let text = with_phase.unwrap_or_else(|| peak_text(bytes, None));
    let half = text::width(&text, SIZE) / 2 + GAP;
    let leftmost = start + half;
    let mut center = (x.clamp(leftmost, (end - half).max(leftmost)), y - 18 - HALF);
    // Not across the budget's line, but above it.
    if let Some(line) = frame.budget_line()
        && (center.1 - HALF - 6..=y - 6).contains(&line)
    {
        center.1 = line - HALF - 6;
    }
    area.draw(&PathElement::new([(x, y), center], BLACK.stroke_width(2)))?;
    area.draw(&Circle::new((x, y), 7, BLACK.filled()))?;
    boxed(area, &text, center)
}

/// The half where the budget's label isn't; all of a narrow plot, where that is far above.
fn peak_room(frame: &Frame, text: &str) -> Range<i32> {
    let wide = text::width(text, SIZE) + 2 * GAP;
    if frame.budget_line().is_none() && wide > frame.x.len() as i32 / 2 {
        return frame.x.clone();
    }
    match peak_is_left(frame) {
        true => frame.x.start..middle(frame),
        false => middle(frame)..frame.x.end,
    }
}

fn peak_text(bytes: Bytes, phase: Option<Phase>) -> String {
    match phase {
        Some(phase) => format!("peak {bytes} ({phase})"),
        None => format!("peak {bytes}"),
    }
}

/// A text on white, around its center.
fn boxed(area: &Area<'_>, text: &str, (x, y): (i32, i32)) -> Drawn {
    let half = text::width(text, SIZE) / 2 + GAP / 2;
    let corners = [(x - half, y - HALF), (x + half, y + HALF)];
    area.draw(&Rectangle::new(corners, WHITE.filled()))?;
    area.draw(&Rectangle::new(corners, BLACK.stroke_width(1)))?;
    area.draw(&Text::new(
        text.to_owned(),
        (x, y),
        text::style(SIZE, HPos::Center),
    ))
}
