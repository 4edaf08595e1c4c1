//! The walks over a module that a census is made of.

use std::collections::HashSet;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::tensor::{Bool, DType, Int, Shape, Tensor};

use super::Count;
use crate::Bytes;
use crate::trace::is_tracing;

/// One float tensor that a module showed.
pub(super) struct Float {
    pub id: ParamId,
    pub trainable: bool,
    pub elements: u64,
    pub bytes: Bytes,
}

/// Lists the floats of a module and counts its integers and booleans, each id once.
#[derive(Default)]
pub(super) struct Walk {
    pub floats: Vec<Float>,
    pub others: Count,
    seen: HashSet<ParamId>,
}

impl ModuleVisitor for Walk {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if self.seen.insert(param.id) {
            let (trainable, dtype) = settings(param);
            let (elements, bytes) = size(param.lazy_shape(), dtype);
            self.floats.push(Float {
                id: param.id,
                trainable,
                elements,
                bytes,
            });
        }
    }

    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
        if self.seen.insert(param.id) {
            let dtype = match param.is_initialized() {
                true => param.base().dtype(),
                false => param.lazy_device().settings().int_dtype.into(),
            };
            let (elements, bytes) = size(param.lazy_shape(), dtype);
            self.others.add(elements, bytes);
        }
    }

    fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<D, Bool>>) {
        if self.seen.insert(param.id) {
            let dtype = match param.is_initialized() {
                true => param.base().dtype(),
                false => param.lazy_device().settings().bool_dtype.into(),
            };
            let (elements, bytes) = size(param.lazy_shape(), dtype);
            self.others.add(elements, bytes);
        }
    }
}

/// Whether `param` is configured to be trained, and the dtype it stores.
///
/// Off autodiff, [`Tensor::is_require_grad`] is always false: what the parameter is configured for
/// is private to Burn, and shows only in what `train` makes of it.
fn settings<const D: usize>(param: &Param<Tensor<D>>) -> (bool, DType) {
    if param.is_initialized() {
        // The capture device refuses `valid`, and always has autodiff.
        let trainable =
            param.is_require_grad() || (!is_tracing() && param.valid().train().is_require_grad());
        return (trainable, param.base().dtype());
    }
    // A one-element tensor loaded in its place carries the setting and leaves the lazy one alone.
    // A load mapper is written for the real shape, so it is taken out.
    let stand_in = Tensor::<D>::zeros([1; D], &param.lazy_device());
    let dtype = stand_in.dtype();
    let loaded = param
        .clone()
        .load_mapper(|tensor| tensor)
        .transform_for_load(stand_in, param.id);
    (loaded.train().is_require_grad(), dtype)
}

fn size(shape: Shape, dtype: DType) -> (u64, Bytes) {
    let shape: Vec<usize> = shape.iter().copied().collect();
    let elements = shape
        .iter()
        .fold(1u64, |product, &dim| product.saturating_mul(dim as u64));
    // A lazy tensor may be too large to count; the most there is says that it does not fit.
    (
        elements,
        Bytes::of_elements(&shape, dtype).unwrap_or(Bytes(u64::MAX)),
    )
}

/// The ids of a module's running statistics.
///
/// A visitor gets a running statistic wrapped in a [`Param`] that looks like a frozen parameter.
/// A mapper sees a difference: a parameter takes the id that the mapper gives it, and a running
/// statistic keeps its own. So a clone gets new ids, and what kept its old one is a statistic.
pub(super) fn running_statistics<M: Module>(module: &M) -> HashSet<ParamId> {
    let before = ids(module);
    let after = ids(&module.clone().map(&mut Rename));
    before.intersection(&after).copied().collect()
}

struct Rename;

impl ModuleMapper for Rename {
    fn map_float<const D: usize>(&mut self, mut param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.id = ParamId::new();
        param
    }
}

/// The ids of the float tensors of a module.
fn ids<M: Module>(module: &M) -> HashSet<ParamId> {
    let mut floats = FloatIds(HashSet::new());
    module.visit(&mut floats);
    floats.0
}

struct FloatIds(HashSet<ParamId>);

impl ModuleVisitor for FloatIds {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.0.insert(param.id);
    }
}
