//! The one integration binary: a module per topic.

#[global_allocator]
static ALLOC: leanburn::memory::CountingAllocator = leanburn::memory::CountingAllocator::system();

mod support;

mod accumulation;
mod checkpoint;
mod chunk;
mod configs;
mod golden;
mod int8;
mod layers;
mod memory;
mod ops;
mod plan;
mod prediction;
mod program;
mod resume;
mod scaling;
mod task;
mod text;
mod tiled;
mod transformer;
mod weights;
