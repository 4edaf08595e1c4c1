//! Memory that grows from epoch to epoch.

use crate::Bytes;

/// Watches what is in use at the same place of every epoch.
///
/// The first epoch is not counted: caches fill in it.
#[derive(Clone, Debug, Default)]
pub struct Growth {
    /// After each epoch behind the first, as long as they grow.
    rising: Vec<u64>,
    epochs: usize,
}

/// Growth below this is noise.
const NOTICED: u64 = 1 << 20;
/// Epochs in a row that have to grow.
const IN_A_ROW: usize = 3;

impl Growth {
    /// Takes note of an epoch's end; a warning where each of the last three held a MiB more than the one before.
    pub fn observe(&mut self, in_use: Bytes) -> Option<String> {
        self.epochs += 1;
        if self.epochs == 1 {
            return None;
        }
        let grew = |last: &u64| in_use.0 >= last.saturating_add(NOTICED);
        if !self.rising.last().is_none_or(grew) {
            self.rising.clear();
        }
        self.rising.push(in_use.0);
        let first = *self.rising.first()?;
        (self.rising.len() > IN_A_ROW).then(|| {
            let grown = Bytes(in_use.0 - first);
            let epochs = self.rising.len() - 1;
            format!("memory in use has grown in each of {epochs} epochs, by {grown} in all: something is kept")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn warnings(levels: &[u64]) -> Vec<bool> {
        let mut growth = Growth::default();
        let observe = |level: &u64| growth.observe(Bytes(level * MIB)).is_some();
        levels.iter().map(observe).collect()
    }

    /// Trap B38: flat after the first epochs is right, and steady growth is told.
    #[test]
    fn steady_growth_is_told_and_a_plateau_is_not() {
        assert_eq!(warnings(&[1, 9, 9, 9, 9, 9]), [false; 6]);
        assert_eq!(
            warnings(&[1, 2, 3, 4, 5, 6]),
            [false, false, false, false, true, true]
        );
        assert_eq!(warnings(&[1, 2, 3, 4, 4, 5, 6]), [false; 7]);
        assert_eq!(warnings(&[9, 8, 7, 6, 5]), [false; 5]);
    }
}
