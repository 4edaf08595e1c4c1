mod axis;
mod bars;
mod layout;
mod lines;
mod odd;
mod words;

use super::*;

const NASTY: &str = "<b>\"x\" & 'y'</b> \u{1b}[31m";

fn page(body: Vec<Block>) -> String {
    let section = Section {
        heading: NASTY.into(),
        note: Some(NASTY.into()),
        body,
    };
    let page = Page {
        title: NASTY.into(),
        lead: NASTY.into(),
        sections: vec![section; 4],
    };
    page.html()
}

fn every_block() -> Vec<Block> {
    let words = || NASTY.to_owned();
    vec![
        Block::Table {
            head: vec![words(), words(), words(), words()],
            rows: vec![
                vec![Cell::Text(words()), Cell::Number(words())],
                vec![Cell::Text(words()), Cell::Error(words())],
            ],
        },
        Block::Facts(vec![(words(), words())]),
        Block::Note(words()),
        Block::Warning(words()),
        Block::Pre(words()),
        Block::Bars(Bars {
            title: words(),
            bars: vec![Bar {
                group: words(),
                name: words(),
                rows: Err(words()),
                peak: None,
            }],
        }),
        Block::Lines(Lines {
            title: words(),
            x: words(),
            y: words(),
            series: vec![
                Series {
                    name: words(),
                    points: vec![(0.0, 1.0), (1.0, 2.0)],
                };
                2
            ],
            marks: vec![Mark {
                x: 0.5,
                label: words(),
            }],
            levels: vec![Level {
                y: 1.5,
                label: words(),
            }],
            ..Lines::default()
        }),
        Block::Svg {
            label: words(),
            wide: "<svg></svg>".into(),
            narrow: None,
        },
    ]
}

#[test]
fn everything_is_escaped() {
    let html = page(every_block());
    assert!(!html.contains("<b>") && !html.contains("\"x\""));
    assert!(html.contains("&lt;b&gt;&quot;x&quot; &amp; 'y'&lt;/b&gt;"));
}

#[test]
fn the_page_asks_for_nothing() {
    let html = page(every_block());
    let names = html.matches("http://www.w3.org/2000/svg").count();
    assert_eq!(
        html.matches("http").count(),
        names + "http-equiv".matches("http").count()
    );
    for asking in [
        "<script", "src=", "url(", "@import", "<img", "<iframe", "<object",
    ] {
        assert!(!html.contains(asking), "{asking}");
    }
    let links = html.matches("href=\"").count();
    let inside = html.matches("href=\"#section-").count();
    assert_eq!((links, inside), (5, 4));
    assert!(html.contains("href=\"data:,\"") && html.contains("default-src 'none'"));
}

#[test]
fn drawings_have_no_ids_to_collide() {
    let html = page(every_block());
    assert_eq!(html.matches(" id=\"").count(), 4);
    assert_eq!(html.matches("role=\"img\"").count(), 4 * 5);
}

#[test]
fn a_column_with_a_number_is_on_the_right_and_an_error_takes_the_rest() {
    let html = page(every_block());
    assert!(
        html.contains("<th class=\"number\" scope=\"col\">")
            || html.contains("<th scope=\"col\" class=\"number\">")
    );
    assert_eq!(html.matches("colspan=\"3\"").count(), 4);
    // Two cells that were not given.
    assert_eq!(html.matches("<td></td><td></td>").count(), 4);
}

#[test]
fn few_sections_have_no_list() {
    let mut page = Page {
        sections: vec![Section::default(); 3],
        ..Page::default()
    };
    assert!(!page.html().contains("<nav"));
    page.sections.push(Section::default());
    assert!(page.html().contains("<nav"));
}

#[test]
fn a_long_run_stays_under_a_megabyte() {
    let noise = |at: u32| f64::from(at.wrapping_mul(2_654_435_761) >> 8);
    let points: Vec<(f64, f64)> = (0..100_000).map(|at| (f64::from(at), noise(at))).collect();
    let series = Series {
        name: "a".into(),
        points,
    };
    let lines = Lines {
        series: vec![series; 3],
        ..Lines::default()
    };
    let page = Page {
        sections: vec![Section {
            body: vec![Block::Lines(lines); 3],
            ..Section::default()
        }],
        ..Page::default()
    };
    let size = page.html().len();
    assert!(size < 1 << 20, "{size}");
}
