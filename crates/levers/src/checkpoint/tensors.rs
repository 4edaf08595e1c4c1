//! What goes into a block and comes out of it: tensors, and tuples and collections of tensors.

use burn::backend::DispatchTensor;
use burn::tensor::{Bool, Int, Tensor};

/// Inputs or outputs of a checkpointed block.
///
/// Float tensors carry gradients; int and bool tensors (token ids, masks) are handed along as they
/// are. Implemented for tensors of every kind and rank, and for `()`, `Option`, `Vec`, arrays and
/// tuples of up to six of these.
pub trait Tensors: Sized {
    /// Everything but the float tensors.
    type Rest: Clone + Send + Sync + 'static;

    /// Takes the float tensors out, in a fixed order.
    fn split(self, floats: &mut Vec<DispatchTensor>) -> Self::Rest;

    /// Puts as many float tensors back, in the same order.
    fn join(rest: Self::Rest, floats: &mut dyn Iterator<Item = DispatchTensor>) -> Self;
}

impl<const D: usize> Tensors for Tensor<D> {
    type Rest = ();

    fn split(self, floats: &mut Vec<DispatchTensor>) {
        floats.push(self.into_dispatch());
    }

    fn join((): (), floats: &mut dyn Iterator<Item = DispatchTensor>) -> Self {
        Self::from_dispatch(floats.next().expect("as many as were taken out"))
    }
}

macro_rules! handed_along {
    ($kind:ty) => {
        impl<const D: usize> Tensors for Tensor<D, $kind> {
            type Rest = Self;

            fn split(self, _floats: &mut Vec<DispatchTensor>) -> Self {
                self
            }

            fn join(rest: Self, _floats: &mut dyn Iterator<Item = DispatchTensor>) -> Self {
                rest
            }
        }
    };
}

handed_along!(Int);
handed_along!(Bool);

impl<T: Tensors> Tensors for Option<T> {
    type Rest = Option<T::Rest>;

    fn split(self, floats: &mut Vec<DispatchTensor>) -> Self::Rest {
        self.map(|tensors| tensors.split(floats))
    }

    fn join(rest: Self::Rest, floats: &mut dyn Iterator<Item = DispatchTensor>) -> Self {
        rest.map(|rest| T::join(rest, floats))
    }
}

impl<T: Tensors> Tensors for Vec<T> {
    type Rest = Vec<T::Rest>;

    fn split(self, floats: &mut Vec<DispatchTensor>) -> Self::Rest {
        self.into_iter()
            .map(|tensors| tensors.split(floats))
            .collect()
    }

    fn join(rest: Self::Rest, floats: &mut dyn Iterator<Item = DispatchTensor>) -> Self {
        rest.into_iter().map(|rest| T::join(rest, floats)).collect()
    }
}

impl<T: Tensors, const N: usize> Tensors for [T; N] {
    type Rest = [T::Rest; N];

    fn split(self, floats: &mut Vec<DispatchTensor>) -> Self::Rest {
        self.map(|tensors| tensors.split(floats))
    }

    fn join(rest: Self::Rest, floats: &mut dyn Iterator<Item = DispatchTensor>) -> Self {
        rest.map(|rest| T::join(rest, floats))
    }
}

macro_rules! tuples {
    ($($name:ident)*) => {
        #[allow(non_snake_case, unused_variables, clippy::unused_unit)]
        impl<$($name: Tensors),*> Tensors for ($($name,)*) {
            type Rest = ($($name::Rest,)*);

            fn split(self, floats: &mut Vec<DispatchTensor>) -> Self::Rest {
                let ($($name,)*) = self;
                ($($name.split(floats),)*)
            }

            fn join(rest: Self::Rest, floats: &mut dyn Iterator<Item = DispatchTensor>) -> Self {
                let ($($name,)*) = rest;
                ($($name::join($name, floats),)*)
            }
        }
    };
}

tuples!();
tuples!(A);
tuples!(A B);
tuples!(A B C);
tuples!(A B C D);
tuples!(A B C D E);
tuples!(A B C D E F);
