//! Memory-conscious deep-learning training on [Burn](burn).

pub use leanburn_compress as compress;
pub use leanburn_data as data;
pub use leanburn_levers as levers;
pub use leanburn_levers::{checkpoint, recompute, seed};
pub use leanburn_memory as memory;
pub use leanburn_models as models;
pub use leanburn_train as train;
