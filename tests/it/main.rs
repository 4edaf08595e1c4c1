//! The one integration binary: a module per topic.

#[global_allocator]
static ALLOC: leanburn::memory::CountingAllocator = leanburn::memory::CountingAllocator::system();

mod support;

mod golden;
mod ops;
