//! Sections and their blocks as HTML.

use maud::{Markup, PreEscaped, html};

use super::{Block, Cell, Section};

/// Pixels of the two drawings of a chart; the style sheet shows one of them.
const WIDE: u32 = 1100;
const NARROW: u32 = 400;

/// Where a link to the section leads.
pub(super) fn anchor(index: usize) -> String {
    format!("section-{}", index + 1)
}

pub(super) fn section(index: usize, section: &Section) -> Markup {
    html! {
        section id=(anchor(index)) {
            h2 { (section.heading) }
            @if let Some(note) = &section.note { p.note { (note) } }
            @for block in &section.body { (self::block(block, &section.heading)) }
        }
    }
}

fn block(block: &Block, heading: &str) -> Markup {
    match block {
        Block::Table { head, rows } => table(head, rows, heading),
        Block::Facts(facts) => html! {
            dl { @for (name, value) in facts { div { dt { (name) } dd { (value) } } } }
        },
        Block::Note(text) => html! { p { (text) } },
        Block::Warning(text) => html! { p.warning role="note" { strong { "Warning: " } (text) } },
        Block::Pre(text) => html! { pre tabindex="0" { (text) } },
        Block::Bars(bars) => chart(|width| bars.svg(width)),
        Block::Lines(lines) => chart(|width| lines.svg(width)),
        Block::Svg {
            label,
            wide,
            narrow,
        } => html! {
            div role="img" aria-label=(label) { (drawing("given", wide, narrow.as_deref())) }
        },
    }
}

fn chart(svg: impl Fn(u32) -> String) -> Markup {
    drawing("chart", &svg(WIDE), Some(&svg(NARROW)))
}

/// One drawing for every screen, or two of which one is shown.
fn drawing(class: &str, wide: &str, narrow: Option<&str>) -> Markup {
    html! {
        figure class=(class) {
            @match narrow {
                Some(narrow) => {
                    div.wide { (PreEscaped(wide)) }
                    div.narrow { (PreEscaped(narrow)) }
                }
                None => div { (PreEscaped(wide)) },
            }
        }
    }
}

/// A table in a box of its own, which scrolls where the screen is too narrow.
fn table(head: &[String], rows: &[Vec<Cell>], heading: &str) -> Markup {
    let columns = rows.iter().map(Vec::len).chain([head.len()]).max();
    let columns = columns.unwrap_or(0);
    let numbers = |column: usize| {
        let mut cells = rows.iter().filter_map(|row| row.get(column));
        cells.any(|cell| matches!(cell, Cell::Number(_)))
    };
    html! {
        div.table role="region" aria-label={ "Table: " (heading) } tabindex="0" {
            table {
                thead { tr {
                    @for column in 0..columns {
                        th scope="col" class=[numbers(column).then_some("number")] {
                            (head.get(column).map_or("", String::as_str))
                        }
                    }
                } }
                tbody { @for row in rows { tr {
                    @for (column, one) in row.iter().enumerate() {
                        @let last = column + 1 == row.len();
                        (cell(one, column, if last { columns - column } else { 1 }))
                    }
                } } }
            }
        }
    }
}

/// A cell; `room` is how many columns it can have, which an error takes and others leave empty.
fn cell(cell: &Cell, column: usize, room: usize) -> Markup {
    html! {
        @match cell {
            // The first column names its row.
            Cell::Text(text) if column == 0 => th scope="row" { (text) },
            Cell::Text(text) => td { (text) },
            Cell::Number(number) => td.number { (number) },
            Cell::Error(error) => td.error colspan=(room) { span { (error) } },
        }
        @if !matches!(cell, Cell::Error(_)) {
            @for _ in 1..room { td {} }
        }
    }
}
