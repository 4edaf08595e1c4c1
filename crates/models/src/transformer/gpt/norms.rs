//! Norms and the linear layers that read them.

use burn::module::Param;
use burn::nn::Linear;
use burn::tensor::Tensor;

use super::{Block, Gpt};
use crate::transformer::norm::Norm;

/// A norm whose output only these layers read, so that what divides the one can multiply the others.
pub struct NormAndReaders<'a> {
    /// Scale, `[width]`.
    pub gamma: &'a mut Param<Tensor<1>>,
    /// Shift, `[width]`, of a LayerNorm.
    pub beta: Option<&'a mut Param<Tensor<1>>>,
    /// With their paths in the module.
    pub readers: Vec<(String, &'a mut Linear)>,
}

impl Gpt {
    /// Every norm inside the blocks with its readers, first to last.
    pub fn norms_and_readers(&mut self) -> Vec<NormAndReaders<'_>> {
        let blocks = self.h.iter_mut().enumerate();
        let pairs = blocks.flat_map(|(index, block)| match block {
            Block::Gpt2(block) => {
                let name = |layer| format!("h.{index}.Gpt2.{layer}");
                [
                    both(&mut block.ln_1, vec![(name("c_attn"), &mut block.c_attn)]),
                    both(&mut block.ln_2, vec![(name("c_fc"), &mut block.c_fc)]),
                ]
            }
            Block::Llama(block) => {
                let name = |layer| format!("h.{index}.Llama.{layer}");
                [
                    both(
                        &mut block.input_layernorm,
                        vec![
                            (name("q_proj"), &mut block.q_proj),
                            (name("k_proj"), &mut block.k_proj),
                            (name("v_proj"), &mut block.v_proj),
                        ],
                    ),
                    both(
                        &mut block.post_attention_layernorm,
                        vec![
                            (name("gate_proj"), &mut block.gate_proj),
                            (name("up_proj"), &mut block.up_proj),
                        ],
                    ),
                ]
            }
        });
        pairs.collect()
    }
}

fn both<'a>(norm: &'a mut Norm, readers: Vec<(String, &'a mut Linear)>) -> NormAndReaders<'a> {
    NormAndReaders {
        gamma: &mut norm.gamma,
        beta: norm.beta.as_mut(),
        readers,
    }
}
