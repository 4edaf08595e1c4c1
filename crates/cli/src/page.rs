//! A report as one HTML file that asks for nothing else: no script, no font, no picture from
//! elsewhere.

mod bars;
mod body;
mod canvas;
mod dash;
mod legend;
mod lines;
pub mod memory;
pub mod over_updates;
mod scale;
mod ticks;
mod unit;
mod words;

use maud::{DOCTYPE, PreEscaped, html};

pub use bars::{Bar, Bars};
pub use lines::{Level, Lines, Mark, Series};
pub use unit::Unit;

const STYLE: &str = include_str!("page/style.css");
/// A browser that keeps to this fetches nothing, whatever the report holds.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";
/// Fewer sections are found without a list of them.
const LISTED: usize = 4;

/// A report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// Above everything, and the name of the browser's tab.
    pub title: String,
    /// What the report says, in one sentence.
    pub lead: String,
    /// The parts, in the order they are read.
    pub sections: Vec<Section>,
}

/// A part of a report under its own heading.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// What the part is about.
    pub heading: String,
    /// A sentence under the heading: how to read what follows.
    pub note: Option<String>,
    /// What the part consists of.
    pub body: Vec<Block>,
}

/// A piece of a section.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// Rows and columns; a column with a number in it is aligned to the right.
    Table {
        /// The name of each column.
        head: Vec<String>,
        /// The cells; a row that is too short is filled up with empty ones.
        rows: Vec<Vec<Cell>>,
    },
    /// Names and what they stand for, such as the environment of a run.
    Facts(Vec<(String, String)>),
    /// A paragraph.
    Note(String),
    /// A paragraph that must not be overlooked.
    Warning(String),
    /// Text as it is, such as a configuration file.
    Pre(String),
    /// Memory by row, one bar per backend and side.
    Bars(Bars),
    /// A quantity over a run.
    Lines(Lines),
    /// A given drawing, never wider than the page. It is not escaped: take none from outside.
    Svg {
        /// What it shows, for those who can't see it.
        label: String,
        /// For screens of 900 pixels and more.
        wide: String,
        /// For narrower ones; without it, the wide one shrinks.
        narrow: Option<String>,
    },
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// Words.
    Text(String),
    /// A number with its unit.
    Number(String),
    /// Why there is no number.
    Error(String),
}

impl Page {
    /// The report as one file, which reads the same from a disk without a network.
    pub fn html(&self) -> String {
        let sections = self.sections.iter().enumerate();
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    meta http-equiv="Content-Security-Policy" content=(POLICY);
                    title { (self.title) }
                    // Without one, a browser asks the server for an icon.
                    link rel="icon" href="data:,";
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    header {
                        h1 { (self.title) }
                        p.lead { (self.lead) }
                        @if self.sections.len() >= LISTED { (self.list()) }
                    }
                    main {
                        @for (index, section) in sections { (body::section(index, section)) }
                    }
                }
            }
        };
        page.into_string()
    }

    /// Links to the sections.
    fn list(&self) -> maud::Markup {
        html! {
            nav aria-label="Sections" {
                ul {
                    @for (index, section) in self.sections.iter().enumerate() {
                        li { a href={ "#" (body::anchor(index)) } { (section.heading) } }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
