use crate::page::dash::dashes;
use crate::page::words::Words;

#[test]
fn words_are_wrapped_and_the_last_line_is_cut() {
    let words = Words::left(13.0);
    assert_eq!(words.wrap("a few words", 300.0, 3), ["a few words"]);
    assert!(words.wrap("  ", 300.0, 3).is_empty());
    let text = "many words that go on and on ".repeat(6);
    for (room, most) in [(80.0, 3), (150.0, 2), (40.0, 1)] {
        let lines = words.wrap(&text, room, most);
        assert_eq!(lines.len(), most);
        assert!(lines.iter().all(|line| words.width(line) <= room));
        assert!(lines.last().is_some_and(|line| line.ends_with('…')));
    }
    // A word without a place to break.
    let lines = words.wrap("/a/path/that/is/longer/than/the/line then more", 100.0, 3);
    assert!(lines[0].ends_with('…') && lines[1] == "then more");
}

#[test]
fn dashes_follow_the_line() {
    let line = [(0.0, 0.0), (10.0, 0.0), (10.0, 10.0)];
    assert_eq!(dashes(&line, &[]), [line.to_vec()]);
    let drawn = dashes(&line, &[6.0, 2.0]);
    let corner = vec![(8.0, 0.0), (10.0, 0.0), (10.0, 4.0)];
    assert_eq!(
        drawn,
        [
            vec![(0.0, 0.0), (6.0, 0.0)],
            corner,
            vec![(10.0, 6.0), (10.0, 10.0)]
        ]
    );
    assert_eq!(dashes(&[(1.0, 1.0)], &[6.0, 2.0]).len(), 1);
    assert_eq!(dashes(&[(1.0, 1.0); 3], &[6.0, 2.0]).len(), 1);
}

#[test]
fn a_long_line_has_few_dashes() {
    let line: Vec<(f64, f64)> = (0..1000)
        .map(|x| (f64::from(x), f64::from(x % 2) * 300.0))
        .collect();
    for pattern in [&[9.0, 4.0][..], &[2.5, 3.5], &[10.0, 3.5, 2.5, 3.5]] {
        let drawn = dashes(&line, pattern);
        assert!((100..=450).contains(&drawn.len()), "{}", drawn.len());
    }
}
