//! What is kept and what the peak is, in bytes.
