//! Reads a drawing back, to see that its words can be read.

pub(super) use crate::timeline::tests::layout::texts;

/// The width and height of a drawing, in its own units.
fn size(svg: &str) -> (f64, f64) {
    let numbers = svg.split("viewBox=\"0 0 ").nth(1).unwrap();
    let numbers = numbers.split('"').next().unwrap();
    let (width, height) = numbers.split_once(' ').unwrap();
    (width.parse().unwrap(), height.parse().unwrap())
}

/// No text lies on another or leaves the drawing, and every number is one.
pub(super) fn check(svg: &str) {
    assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n"));
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    assert!(!svg.contains('\u{1b}'));
    assert_eq!(svg.matches("<svg").count(), 1);
    let (width, height) = size(svg);
    // As wide as they are shown.
    let mut shown = svg.to_owned();
    for (escaped, plain) in [
        ("&lt;", "("),
        ("&gt;", ")"),
        ("&quot;", "'"),
        ("&amp;", "&"),
    ] {
        shown = shown.replace(escaped, plain);
    }
    let texts = texts(&shown);
    for (index, (one, text)) in texts.iter().enumerate() {
        let [left, right, top, bottom] = *one;
        // Bold letters and rounding.
        let inside = left >= -1.0 && right <= width + 1.0 && top >= 0.0 && bottom <= height;
        assert!(inside, "`{text}` is outside {width} x {height}: {one:?}");
        for (other, with) in &texts[..index] {
            let apart =
                left >= other[1] || other[0] >= right || top >= other[3] || other[2] >= bottom;
            assert!(apart, "`{text}` {one:?} lies on `{with}` {other:?}");
        }
    }
}

/// The drawings at all widths, checked.
pub(super) fn checked(svg: impl Fn(u32) -> String) -> String {
    for width in [0, 240, 400, 640, 1100, u32::MAX] {
        check(&svg(width));
    }
    svg(1100)
}

/// Whether one of the texts is `text`.
pub(super) fn says(svg: &str, text: &str) -> bool {
    texts(svg).iter().any(|(_, other)| *other == text)
}
