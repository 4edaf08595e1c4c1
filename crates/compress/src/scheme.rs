//! What is stored as integers, and how.

use std::collections::BTreeMap;

use leanburn_levers::Affine;
use serde::{Deserialize, Serialize};

use crate::Kind;

/// How one layer is stored and computed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerScheme {
    /// What the layer is.
    pub kind: Kind,
    /// How its input is rounded; `None` leaves it as it is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub input: Option<Affine>,
}

/// Every layer that is stored as integers, by its path.
pub type Scheme = BTreeMap<String, LayerScheme>;
