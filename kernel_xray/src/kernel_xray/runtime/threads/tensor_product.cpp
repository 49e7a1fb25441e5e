// tensor_product.cpp: tcgen05.mma: what one multiplies, where its sums lie in tensor memory, and what it reads.
//
// Of a pair of blocks, the even one has the first half of the rows of a and d, and the first half of the columns of b. A
// product of 128 rows that a pair shares has the second half of its columns in the lanes from 64 on; one of 64 rows has 16
// rows in the lanes of each warp.
//
// Sums are float32 or integers, one product after another. On Blackwell, last bits of float32 may differ.
#include <cmath>
#include <memory>
#include <type_traits>

#include "../../include/simt/narrow_formats.h"
#include "../../include/simt/wgmma.h"
#include "threads/block.h"
#include "threads/tensor_memory.h"
#include "trace/trace.h"
#include "trace/traced_block.h"

namespace simt {

namespace {

enum class Format : uint8_t { f16, bf16, tf32, e4m3, e5m2, u8, s8, none };
enum class SumFormat : uint8_t { f16, f32, s32, none };

struct Instruction {  // the fields of its descriptor
  Format a, b;
  SumFormat d;
  bool negative, a_transposed, b_transposed, other;  // other: sparse, saturating or shifted
  unsigned m, n;

  Instruction(uint32_t bits, TensorKind kind)
      : a(format(kind, bits >> 7 & 7)), b(format(kind, bits >> 10 & 7)), d(static_cast<SumFormat>(bits >> 4 & 3)) {
    negative = (bits >> 13 ^ bits >> 14) & 1;
    a_transposed = bits >> 15 & 1;
    b_transposed = bits >> 16 & 1;
    other = bits >> 2 & 3 || bits >> 30;
    n = (bits >> 17 & 63) * 8;
    m = (bits >> 24 & 31) * 16;
  }
  static Format format(TensorKind kind, unsigned code) {
    constexpr Format kFormats[][3] = {{Format::f16, Format::bf16, Format::none},
                                      {Format::none, Format::none, Format::tf32},
                                      {Format::e4m3, Format::e5m2, Format::none},
                                      {Format::u8, Format::s8, Format::none}};
    return code < 3 ? kFormats[unsigned(kind)][code] : Format::none;
  }
  bool integers() const { return a >= Format::u8; }
  bool known() const {
    return a != Format::none && b != Format::none && !other &&
           (integers() ? d == SumFormat::s32 : d == SumFormat::f32 || (d == SumFormat::f16 && a != Format::tf32));
  }
  bool shape(bool pair) const {
    const unsigned least = pair ? 128 : 64, step = pair ? 16 : 8;
    return (m == least || m == 2 * least) && n % step == 0 && n >= step && n <= 256;
  }
  unsigned element_bytes() const { return a < Format::tf32 ? 2 : a == Format::tf32 ? 4 : 1; }
  unsigned depth() const { return kFactorBytes / element_bytes(); }
  TensorType type() const {
    constexpr TensorType kTypes[] = {TensorType::float16, TensorType::bfloat16, TensorType::tf32, TensorType::float8,
                                     TensorType::float8,  TensorType::int8,     TensorType::int8};
    return kTypes[unsigned(a)];
  }
};

// visit(a value of the format's class).
template <typename Visit>
auto with_format(Format format, Visit visit) {
  switch (format) {
    case Format::f16:
      return visit(WgmmaF16{});
    case Format::bf16:
      return visit(WgmmaBf16{});
    case Format::tf32:
      return visit(WgmmaTf32{});
    case Format::e4m3:
      return visit(WgmmaE4m3{});
    case Format::e5m2:
      return visit(WgmmaE5m2{});
    case Format::u8:
      return visit(WgmmaInteger<uint8_t>{});
    default:
      return visit(WgmmaInteger<int8_t>{});
  }
}

// A product with sums of type Value, as the blocks of `ranks` share it.
template <typename Value>
class Product {
 public:
  Product(const TensorProduct& product, const Instruction& instruction, unsigned first, unsigned blocks)
      : product_(product),
        in_(instruction),
        first_(first),
        blocks_(blocks),
        depth_(instruction.depth()),
        rows_(instruction.m / blocks) {}

  void run() {
    for (unsigned block = 0; block < blocks_; ++block) {
      decode(b_, in_.n, block * in_.n / blocks_, memory(block), product_.b, in_.n / blocks_, in_.b, in_.b_transposed);
    }
    for (unsigned block = 0; block < blocks_; ++block) {
      if (product_.a_in_tensor_memory)
        decode_cells(first_ + block);
      else
        decode(a_, rows_, 0, memory(block), product_.a, rows_, in_.a, in_.a_transposed);
      for (unsigned row = 0; row < rows_; ++row) add_row(block, row);
    }
  }

 private:
  const char* memory(unsigned block) const { return current_worker->shared_of(first_ + block); }

  // Lines of a factor, k after k: to[k * stride + at + line].
  void decode(Value* to, unsigned stride, unsigned at, const char* memory, uint64_t descriptor, unsigned lines,
              Format format, bool transposed) {
    const Descriptor factor(descriptor);
    with_format(format, [&](auto of) {
      using F = decltype(of);
      if constexpr (std::is_same_v<typename F::Value, Value>)
        for (unsigned k = 0; k < depth_; ++k)
          for (unsigned line = 0; line < lines; ++line)
            to[k * stride + at + line] =
                transposed ? element<F, true>(memory, factor, static_cast<int>(line), static_cast<int>(k))
                           : element<F, false>(memory, factor, static_cast<int>(line), static_cast<int>(k));
    });
  }
  // The rows of a from tensor memory: a row in each lane, one behind the other in a column as many as it holds.
  void decode_cells(unsigned rank) {
    const auto address = static_cast<uint32_t>(product_.a);
    with_format(in_.a, [&](auto of) {
      using F = decltype(of);
      constexpr unsigned size = sizeof(typename F::Bits);
      if constexpr (std::is_same_v<typename F::Value, Value>)
        for (unsigned row = 0; row < rows_; ++row)
          for (unsigned k = 0; k < depth_; ++k) {
            const uint32_t cell = tensor_memory_of(rank).row(lane_of(address) + row)[column_of(address) + k * size / 4];
            a_[k * rows_ + row] = F::decode(static_cast<typename F::Bits>(cell >> k * size % 4 * 8));
          }
    });
  }

  void add_row(unsigned block, unsigned row) {
    const unsigned parts = blocks_ == 2 && rows_ == 64 ? 2 : 1, columns = in_.n / parts;
    const unsigned spread = blocks_ == 1 && rows_ == 64 ? row / 16 * 32 + row % 16 : row;
    for (unsigned part = 0; part < parts; ++part) {
      const unsigned lane = lane_of(product_.d) + spread + part * 64;
      if (product_.disabled[block * 4 + lane / 32 % 4] >> lane % 32 & 1) continue;
      uint32_t* const cells = tensor_memory_of(first_ + block).row(lane) + column_of(product_.d);
      Value sums[256] = {};
      for (unsigned n = 0; n < columns && product_.add; ++n) sums[n] = begun(cells[n]);
      for (unsigned k = 0; k < depth_; ++k) {
        const Value left = in_.negative ? -a_[k * rows_ + row] : a_[k * rows_ + row];
        const Value* const right = b_ + k * in_.n + part * columns;
        for (unsigned n = 0; n < columns; ++n) sums[n] += left * right[n];
      }
      for (unsigned n = 0; n < columns; ++n) cells[n] = ended(sums[n]);
    }
  }
  // A cell, as a sum. One in half precision is in its lower half.
  Value begun(uint32_t cell) const {
    if constexpr (std::is_same_v<Value, float>) {
      const float sum = in_.d == SumFormat::f16 ? WgmmaF16::decode(cell & 0xffff) : of_bits(cell);
      return product_.scale ? std::ldexp(sum, -static_cast<int>(product_.scale)) : sum;
    } else {
      return static_cast<Value>(cell);
    }
  }
  uint32_t ended(Value sum) const {
    if constexpr (std::is_same_v<Value, float>) {
      return in_.d == SumFormat::f16 ? Binary16::encode(sum) : bits_of(sum);
    } else {
      return static_cast<uint32_t>(sum);
    }
  }

  const TensorProduct& product_;
  const Instruction& in_;
  const unsigned first_, blocks_, depth_, rows_;
  Value a_[32 * 128], b_[32 * 256];
};

void tell_factor(const char* memory, uint64_t descriptor, unsigned lines, const Instruction& in, bool transposed) {
  if (transposed)
    tell_lines(memory, Descriptor(descriptor), 0, in.depth(), 0, lines * in.element_bytes(), true);
  else
    tell_lines(memory, Descriptor(descriptor), 0, lines, 0, kFactorBytes, false);
}

}  // namespace

void tensor_multiply(const TensorProduct& product) {
  const void* const site = __builtin_return_address(0);
  if (!in_kernel()) throw Fault("host-call", "tcgen05.mma was called outside a kernel");
  const Instruction in(product.instruction, product.kind);
  const unsigned blocks = product.pair ? 2 : 1, first = cluster_rank() & ~(blocks - 1), rows = in.m / blocks;
  const char* why = Descriptor(product.b).refused();
  if (!why && !product.a_in_tensor_memory) why = Descriptor(product.a).refused();
  if (!in.known())
    why =
        "not supported by the simulator: tcgen05.mma of these types: it has f16 and bf16, tf32, e4m3 and e5m2, and "
        "8-bit integers, dense and without saturation";
  if (product.a_in_tensor_memory && rows != 128)
    why = "not supported by the simulator: tcgen05.mma with less than 128 rows of a in tensor memory";
  if (why) refuse_tensor(site, "unsupported", why);
  if (!in.shape(product.pair))
    refuse_tensor(site, "unsupported",
                  "tcgen05.mma has no product of " + std::to_string(in.m) + " rows and " + std::to_string(in.n) +
                      " columns for " + std::to_string(blocks) + (blocks == 1 ? " block" : " blocks"));
  if (first + blocks > current_worker->cluster_blocks)
    refuse_tensor(site, "cluster", "tcgen05.mma with cta_group::2 in a block that has no peer in its cluster");

  const unsigned columns = blocks == 2 && rows == 64 ? in.n / 2 : in.n;
  const unsigned lanes = rows == 128 || blocks == 2 ? 128 : 112;
  const auto left = static_cast<uint32_t>(product.a);
  const unsigned of_left = kFactorBytes / 4;  // columns of a in tensor memory
  for (unsigned rank = first; rank < first + blocks; ++rank) {
    check_columns(site, rank, product.d, lanes, columns, "tcgen05.mma");
    if (product.a_in_tensor_memory) check_columns(site, rank, left, 128, of_left, "tcgen05.mma");
  }
  if (trace::in_traced_block()) {
    for (unsigned rank = first; rank < first + blocks; ++rank) {
      const char* const memory = current_worker->shared_of(rank);
      if (!product.a_in_tensor_memory) tell_factor(memory, product.a, rows, in, in.a_transposed);
      tell_factor(memory, product.b, in.n / blocks, in, in.b_transposed);
      trace::this_block->replay.work.add_products(rank, in.type(), rows * in.n * in.depth());
    }
    trace::OrderedCall call(site);
    const trace::ProxyClocks known = call->clocks.full(call->cluster.running());
    const trace::Epoch epoch = call->units.multiply(known);
    for (unsigned rank = first; rank < first + blocks; ++rank) {
      call->columns.product(rank, column_of(product.d), columns, known, epoch);
      if (product.a_in_tensor_memory) call->columns.product(rank, column_of(left), of_left, known, {0, 0});
    }
  }
  if (in.integers())
    std::make_unique<Product<int32_t>>(product, in, first, blocks)->run();
  else
    std::make_unique<Product<float>>(product, in, first, blocks)->run();
}

}  // namespace simt
