//! Keeping a block's input in host memory until the backward comes near.

use std::cell::RefCell;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use burn::backend::ops::FloatTensorOps;
use burn::backend::{Dispatch, DispatchDevice, DispatchTensor, TensorMetadata};
use burn::tensor::{FloatDType, Shape, TensorData, read_sync};

use super::is_capturing;

thread_local! {
    /// The input parked last: the one needed before it is needed is the next to park.
    static LAST: RefCell<Weak<Mutex<Place>>> = RefCell::default();
}

/// A tensor without gradients that waits for the backward.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    place: Arc<Mutex<Place>>,
    /// Parked just before this one, so wanted just after it.
    before: Weak<Mutex<Place>>,
}

#[derive(Debug)]
enum Place {
    Device(DispatchTensor),
    Host(TensorData, DispatchDevice),
    /// On a device that computes nothing: what will be uploaded is a new tensor of this size.
    Traced(Shape, FloatDType, DispatchDevice),
    Taken,
}

impl Kept {
    /// Keeps the tensor; `park`ed, its bits are read back and its device memory is freed.
    pub fn new(tensor: DispatchTensor, park: bool) -> Self {
        if !park {
            return Self {
                place: Arc::new(Mutex::new(Place::Device(tensor))),
                before: Weak::new(),
            };
        }
        let device = tensor.device();
        let place = match is_capturing(&tensor) {
            true => Place::Traced(tensor.shape(), tensor.dtype().into(), device),
            false => Place::Host(read(tensor), device),
        };
        let place = Arc::new(Mutex::new(place));
        let before = LAST.replace(Arc::downgrade(&place));
        Self { place, before }
    }

    /// The tensor, on its device; it stays.
    pub fn value(&self) -> DispatchTensor {
        let mut place = lock(&self.place);
        place.upload();
        match &*place {
            Place::Device(tensor) => tensor.clone(),
            Place::Host(..) | Place::Traced(..) | Place::Taken => {
                unreachable!("uploaded, and taken only at the end")
            }
        }
    }

    /// The tensor, on its device; the upload of the one wanted next is under way when this returns.
    pub fn take(self) -> DispatchTensor {
        let mut place = lock(&self.place);
        place.upload();
        let Place::Device(tensor) = mem::replace(&mut *place, Place::Taken) else {
            unreachable!("a backward step runs once, and has just uploaded")
        };
        if let Some(before) = self.before.upgrade() {
            lock(&before).upload();
        }
        tensor
    }
}

impl Place {
    fn upload(&mut self) {
        *self = match mem::replace(self, Self::Taken) {
            Self::Host(data, device) => Self::Device(
                <Dispatch as FloatTensorOps<Dispatch>>::float_from_data(data, &device),
            ),
            Self::Traced(shape, dtype, device) => {
                Self::Device(<Dispatch as FloatTensorOps<Dispatch>>::float_zeros(
                    shape, &device, dtype,
                ))
            }
            place => place,
        };
    }
}

fn read(tensor: DispatchTensor) -> TensorData {
    let data = <Dispatch as FloatTensorOps<Dispatch>>::float_into_data(tensor);
    read_sync(data).expect("the device can be read")
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
