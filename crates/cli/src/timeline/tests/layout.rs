//! Reads a drawing back, to see that its words can be read.

use crate::timeline::text;

/// Left, right, top and bottom of every text, and the text.
pub(crate) fn texts(svg: &str) -> Vec<([f64; 4], &str)> {
    let elements = svg
        .split("<text ")
        .skip(1)
        .map(|rest| rest.split_once(">\n").unwrap());
    elements
        .map(|(attributes, rest)| {
            let text = rest.split("\n</text>").next().unwrap();
            (place(attributes, text), text)
        })
        .collect()
}

fn place(attributes: &str, text: &str) -> [f64; 4] {
    let get = |name: &str| {
        let from = attributes.split(&format!("{name}=\"")).nth(1).unwrap_or("");
        from.split('"').next().unwrap_or("")
    };
    let [x, y, size] = ["x", "y", "font-size"].map(|name| get(name).parse::<f64>().unwrap());
    let wide = f64::from(text::width(text, size.round() as i32));
    let left = match get("text-anchor") {
        "middle" => x - wide / 2.0,
        "end" => x - wide,
        _ => x,
    };
    // Only the name of the y axis is turned, around its anchor.
    if get("transform").starts_with("rotate") {
        return [
            x - size / 2.0,
            x + size / 2.0,
            y - wide / 2.0,
            y + wide / 2.0,
        ];
    }
    let top = if get("dy") == "0.76em" {
        y
    } else {
        y - size / 2.0
    };
    [left, left + wide, top, top + size]
}

/// No text lies on another or leaves the drawing.
pub(super) fn check(svg: &str) {
    assert!(svg.starts_with("<svg width=") && svg.ends_with("</svg>\n"));
    let size = |at| svg.split('"').nth(at).unwrap().parse::<f64>().unwrap();
    let (width, height) = (size(1), size(3));
    let texts = texts(svg);
    for (index, (one, text)) in texts.iter().enumerate() {
        let [left, right, top, bottom] = *one;
        let inside = left >= 0.0 && right <= width && top >= 0.0 && bottom <= height;
        assert!(inside, "`{text}` is outside: {one:?}");
        for (other, with) in &texts[..index] {
            let apart =
                left >= other[1] || other[0] >= right || top >= other[3] || other[2] >= bottom;
            assert!(apart, "`{text}` {one:?} lies on `{with}` {other:?}");
        }
    }
}
