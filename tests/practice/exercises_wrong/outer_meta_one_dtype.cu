// Always float32.
// expect: float64, 0 x 3, on the device meta: the result has the dtype float32
Tensor outer_without_numbers(const Tensor& a, const Tensor& b) {
  STD_TORCH_CHECK(a.dim() == 1 && b.dim() == 1, "a and b must be vectors");
  STD_TORCH_CHECK(a.scalar_type() == b.scalar_type(), "a and b must have the same dtype");
  return torch::stable::new_empty(a, {a.size(0), b.size(0)}, ScalarType::Float);
}
