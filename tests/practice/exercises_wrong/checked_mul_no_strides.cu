// Forgets that a view may skip elements.
// expect: a is every other element of a tensor: accepted, and misread by the kernel
void check_operands(const Tensor& a, const Tensor& b) {
  STD_TORCH_CHECK(a.is_cuda(), "a must be a CUDA tensor");
  STD_TORCH_CHECK(b.is_cuda(), "b must be a CUDA tensor");
  STD_TORCH_CHECK(a.scalar_type() == ScalarType::Float, "a must be float32, got ", ladder::dtype_name(a.scalar_type()));
  STD_TORCH_CHECK(b.scalar_type() == ScalarType::Float, "b must be float32, got ", ladder::dtype_name(b.scalar_type()));
  STD_TORCH_CHECK(ladder::shape_of(a) == ladder::shape_of(b), "a and b must have the same shape, got ",
                  ladder::shape_of(a), " and ", ladder::shape_of(b));
}
