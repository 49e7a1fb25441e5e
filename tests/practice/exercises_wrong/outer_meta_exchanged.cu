// Rows and columns are exchanged.
// expect: float32, 0 x 3, on the device meta: the result has the shape \[3, 0\], but should have \[0, 3\]
Tensor outer_without_numbers(const Tensor& a, const Tensor& b) {
  STD_TORCH_CHECK(a.dim() == 1 && b.dim() == 1, "a and b must be vectors");
  STD_TORCH_CHECK(a.scalar_type() == b.scalar_type(), "a and b must have the same dtype");
  return torch::stable::new_empty(a, {b.size(0), a.size(0)});
}
