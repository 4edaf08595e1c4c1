//! The layers of a module whose weights can be stored as integers.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

/// What a layer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// 2-D convolution, weight `[out, in / groups, kh, kw]`.
    Conv2d,
    /// Linear layer, weight `[in, out]`.
    Linear,
    /// Table, weight `[rows, width]`.
    Embedding,
}

impl Kind {
    fn named(container: &str) -> Option<Self> {
        match container {
            "Struct:Conv2d" => Some(Self::Conv2d),
            "Struct:Linear" => Some(Self::Linear),
            "Struct:Embedding" => Some(Self::Embedding),
            _ => None,
        }
    }

    /// The weight's axis of channels: those of the output, and the rows of a table.
    pub fn axis(self) -> usize {
        match self {
            Self::Conv2d | Self::Embedding => 0,
            Self::Linear => 1,
        }
    }

    /// Whether it multiplies its input, which can then be rounded too.
    pub fn has_input(self) -> bool {
        self != Self::Embedding
    }
}

/// A layer with a weight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Path of the layer in the module, such as `layer1.0.conv2`.
    pub path: String,
    /// What it is.
    pub kind: Kind,
    /// Of its weight.
    pub shape: Vec<usize>,
}

/// All Burn layers of a module that have a weight in integers, or could have one, in the module's order.
pub fn layers<M: Module>(module: &M) -> Vec<Layer> {
    Walk::over(module).found
}

/// The layer that a parameter of this path is the weight of.
pub(crate) fn layer_of(path: &str) -> Option<&str> {
    if path == "weight" {
        return Some("");
    }
    path.strip_suffix(".weight")
}

/// What a walk over a module finds.
#[derive(Default)]
pub(crate) struct Walk {
    path: Vec<String>,
    kinds: Vec<Option<Kind>>,
    pub found: Vec<Layer>,
    /// Layers whose weight is not what is stored.
    pub reparameterized: Vec<String>,
}

impl Walk {
    pub fn over<M: Module>(module: &M) -> Self {
        let mut walk = Self::default();
        module.visit(&mut walk);
        walk
    }
}

impl ModuleVisitor for Walk {
    fn enter_module(&mut self, name: &str, container: &str) {
        let path = self.path.join(".");
        if let ("Reparameterization", Some(layer)) = (container, layer_of(&path)) {
            self.reparameterized.push(layer.to_owned());
        }
        self.path.push(name.to_owned());
        self.kinds.push(Kind::named(container));
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
        self.kinds.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let path = self.path.join(".");
        if let (Some(Some(kind)), Some(layer)) = (self.kinds.last(), layer_of(&path)) {
            self.found.push(Layer {
                path: layer.to_owned(),
                kind: *kind,
                shape: param.lazy_shape().to_vec(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::nn::conv::{Conv2d, Conv2dConfig};
    use burn::nn::{BatchNorm, BatchNormConfig, Embedding, EmbeddingConfig, Linear, LinearConfig};
    use burn::tensor::Device;

    #[derive(Module, Debug)]
    struct Net {
        table: Embedding,
        convs: Vec<Conv2d>,
        norm: BatchNorm,
        head: Linear,
    }

    #[test]
    fn finds_weights_and_nothing_else() {
        let device = Device::flex();
        let net = Net {
            table: EmbeddingConfig::new(5, 2).init(&device),
            convs: vec![Conv2dConfig::new([2, 3], [1, 1]).init(&device)],
            norm: BatchNormConfig::new(3).init(&device),
            head: LinearConfig::new(3, 4).init(&device),
        };
        let layer = |path: &str, kind, shape: &[usize]| Layer {
            path: path.into(),
            kind,
            shape: shape.into(),
        };
        assert_eq!(
            layers(&net),
            [
                layer("table", Kind::Embedding, &[5, 2]),
                layer("convs.0", Kind::Conv2d, &[3, 2, 1, 1]),
                layer("head", Kind::Linear, &[3, 4]),
            ]
        );
    }
}
