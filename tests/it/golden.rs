//! Equality with torchvision; `benches/peers/golden_resnet.py` makes the files.
