//! Many operations in few columns, and the outline of each row in pixels.

use std::ops::Range;

use leanburn_memory::Row;

use super::frame::{Frame, STACK};
use super::{Point, ROWS};

/// Some operations in a row, drawn as one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Column {
    /// Which operations.
    pub operations: Range<usize>,
    /// The one of them with the largest total.
    pub point: Point,
}

/// The points in at most `most` columns.
pub(super) fn columns(points: &[Point], most: usize) -> Vec<Column> {
    let count = points.len().min(most);
    let column = |index: usize| {
        let operations = index * points.len() / count..(index + 1) * points.len() / count;
        let largest = points[operations.clone()].iter().max_by_key(|p| p.total());
        Column {
            point: largest.copied().unwrap_or_default(),
            operations,
        }
    };
    (0..count).map(column).collect()
}

/// The area of one row: for each pixel from `left`, where it starts and ends (y grows downwards).
#[derive(Clone, Debug)]
pub(crate) struct Band {
    pub left: i32,
    pub tops: Vec<i32>,
    pub bottoms: Vec<i32>,
}

impl Band {
    /// A rectangle, as in the legend.
    pub fn rectangle(x: Range<i32>, y: Range<i32>) -> Self {
        Self {
            left: x.start,
            tops: vec![y.start; x.len()],
            bottoms: vec![y.end; x.len()],
        }
    }

    /// The upper edge as steps, left to right.
    pub fn top(&self) -> Vec<(i32, i32)> {
        steps(self.left, &self.tops)
    }

    /// The whole outline.
    pub fn outline(&self) -> Vec<(i32, i32)> {
        let mut outline = self.top();
        outline.extend(steps(self.left, &self.bottoms).into_iter().rev());
        outline
    }
}

/// Heights per pixel as a line, which has corners only where the height changes.
fn steps(left: i32, heights: &[i32]) -> Vec<(i32, i32)> {
    let mut corners = Vec::new();
    let mut x = left;
    for run in heights.chunk_by(|a, b| a == b) {
        corners.push((x, run[0]));
        x += run.len() as i32;
        corners.push((x, run[0]));
    }
    corners
}

/// The areas of all rows, as they are stacked.
pub(super) fn bands(points: &[Point], frame: &Frame) -> Vec<(Row, Band)> {
    let columns = columns(points, frame.x.len());
    let mut edges = vec![Vec::new(); ROWS + 1];
    for column in &columns {
        let Range { start, end } = column.operations;
        let pixels = frame.at(end) - frame.at(start);
        let mut sum = 0u64;
        let sums = STACK.into_iter().map(|row| {
            sum = sum.saturating_add(column.point.rows[row as usize]);
            sum
        });
        for (edge, sum) in edges.iter_mut().zip(std::iter::once(0).chain(sums)) {
            edge.extend((0..pixels).map(|_| frame.height(sum)));
        }
    }
    let edges = STACK.into_iter().zip(edges.windows(2));
    edges
        .map(|(row, pair)| {
            let band = Band {
                left: frame.x.start,
                tops: pair[1].clone(),
                bottoms: pair[0].clone(),
            };
            (row, band)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(bytes: u64) -> Point {
        let mut point = Point::default();
        point.rows[0] = bytes;
        point
    }

    #[test]
    fn a_column_keeps_its_largest_point() {
        let mut points = vec![point(1); 10_001];
        points[7_777] = point(9);
        let columns = columns(&points, 1200);
        assert_eq!(columns.len(), 1200);
        let covered: usize = columns.iter().map(|c| c.operations.len()).sum();
        assert_eq!(covered, points.len());
        let largest = columns.iter().filter(|c| c.point == point(9));
        assert!(largest.eq(columns.iter().filter(|c| c.operations.contains(&7_777))));
    }

    #[test]
    fn a_short_step_keeps_every_point() {
        let points = [point(3), point(1)];
        let columns = columns(&points, 1200);
        assert_eq!(columns.len(), 2);
        assert_eq!(columns[1].operations, 1..2);
        assert_eq!(columns[1].point, point(1));
    }

    #[test]
    fn corners_are_where_the_height_changes() {
        let corners = steps(10, &[5, 5, 5, 2]);
        assert_eq!(corners, [(10, 5), (13, 5), (13, 2), (14, 2)]);
        let band = Band::rectangle(0..4, 1..3);
        assert_eq!(band.outline(), [(0, 1), (4, 1), (4, 3), (0, 3)]);
    }
}
