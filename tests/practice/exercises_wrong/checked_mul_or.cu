// One check for all demands, joined by || where && was meant: it passes as soon as one of them holds.
// expect: b is float64: accepted, and misread by the kernel
void check_operands(const Tensor& a, const Tensor& b) {
  STD_TORCH_CHECK(ladder::shape_of(a) == ladder::shape_of(b) || a.scalar_type() == b.scalar_type() ||
                      a.get_device_index() == b.get_device_index(),
                  "a and b must be alike, got shapes ", ladder::shape_of(a), " and ", ladder::shape_of(b));
}
