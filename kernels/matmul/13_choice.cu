// 13_choice.cu: c = a @ b in bfloat16 for a caller: of 24 forms of matmul_cluster,
// matmul_split and the product with a and b swapped, the one whose predicted time is
// least. One rung.
//
// A form is a kernel and a tile. Its time follows from how often each SM must work:
//
//   waves  SMs that have no tile wait for those that have: 144 tiles for 66 clusters
//          take as long as 198. A form whose tiles fill the last wave wins
//   steps  64 along k for one tile. A larger tile takes fewer bytes for each product
//   parts  the tiles of the last waves may be split along k, so that all SMs have some
//          of it. Their sums in float32 are written, read and added up
//   bytes  no form is faster than a, b and c are read and written, where the L2 cache
//          is too small for them
//   shared all SMs read through one L2 cache: with work for all, a step takes half as
//          long again as with work for a few. Rows that do not begin at whole sectors
//          of 32 bytes take one sector more for each row of a tile
//
//   time = max(products, bytes) + min(products, bytes) / 30 + parts' sums
//   products = launch + waves * tile + waves * steps of a tile * shared step
//
// `step`, `tile` and `launch` of a form are measured: such, in microseconds, that the
// form that is chosen is near the fastest, and that predicted times are near those
// measured, for 51,596 times of 2,235 random shapes on an H200. Fitted to three
// quarters of the shapes, it chose for the others forms that took 3% longer than the
// fastest (mean). Other clocks and memory were not measured: the choice is as good
// there as both scale together. SMs are counted.
//
// What limits it: with few columns or rows, steps of 64, of which one thread requests
// all tiles; with a few tiles more than SMs, a last wave. On an H200 it has 100% of
// cuBLAS's speed at 4096 x 4096 x 4096, bfloat16.
//
// Needs compute capability 9.0: build with -gencode=arch=compute_90a,code=sm_90a.

#include <torch/csrc/stable/library.h>

#define LADDER_NO_SPLIT_OPERATOR
#include "../matmul/12_split.cu"

#include "hopper_matmul.h"
#include "hopper_parts.h"
#include "hopper_swapped.h"

// -------------------------------------------------------------------------------------
// Forms

// How a product is launched: tiles from number `whole` on have `parts` parts.
struct Plan {
  int form;
  int64_t whole;
  int parts;
  double time;  // predicted, in microseconds
};

// Factors of 8 bits have an epilogue of their own. Two neighbours along k count as one
// element then, in the sizes too.
template <typename E>
constexpr bool kE4m3 = std::is_same_v<E, hopper::Scaled>;

// How much longer a step takes when all SMs have work, as a part of it.
constexpr double kShared = 0.557;

// E: the epilogue.
template <typename E>
struct Form {
  int m, n, splits;  // a cluster's tile; parts of k that the cluster itself adds up
  bool persistent;   // whether a cluster does several tiles: the first may stay whole
  double step, tile, launch, shared;
  int (*at_once)();  // how many clusters the GPU runs
  Tensor (*run)(const Tensor& a, const Tensor& b, const Plan& plan, E epilogue);
};

template <typename E, int n, int cluster>
constexpr Form<E> persistent(double step, double tile, double launch,
                             double shared = kShared) {
  using F = TileConfig<n, cluster, kE4m3<E>>;
  return {cluster * kM,
          n,
          1,
          true,
          step,
          tile,
          launch,
          shared,
          [] {
            return std::max(
                1, ladder::device_attribute(cudaDevAttrMultiProcessorCount) / cluster);
          },
          [](const Tensor& a, const Tensor& b, const Plan& plan, E epilogue) {
            return run<StoreMode::overlapped, E, F>(a, b, epilogue, nullptr, plan.whole,
                                                    plan.parts);
          }};
}

template <typename E, int groups, int rows, int splits, int n>
constexpr Form<E> one_tile(double step, double tile, double launch) {
  using F = small::Config<groups, rows, 1, splits, n>;
  return {rows * F::m,
          n,
          splits,
          false,
          step,
          tile,
          launch,
          kShared,
          small::resident_clusters<F, E>,
          [](const Tensor& a, const Tensor& b, const Plan& plan, E epilogue) {
            return small::run_config<F>(a, b, plan.parts, epilogue);
          }};
}

template <typename E, int m, int n, int down, int across, int per_sm = 1>
constexpr Form<E> swap(double step, double tile, double launch,
                       double shared = kShared) {
  using F = hopper::swapped::Config<m, n, down, across, per_sm, kE4m3<E>>;
  return {F::rows,
          F::columns,
          1,
          true,
          step,
          tile,
          launch,
          shared,
          hopper::swapped::resident_clusters<F, E>,
          [](const Tensor& a, const Tensor& b, const Plan& plan, E epilogue) {
            return hopper::swapped::run<F>(a, b, plan.whole, plan.parts, epilogue);
          }};
}

// persistent: columns, blocks. one_tile: warp groups, tiles down, parts of k, columns.
// swap: rows, columns, blocks down, across, and on an SM. All: step, tile, launch
// and, where it is not kShared, shared.
template <typename E>
constexpr Form<E> kForms[] = {persistent<E, 256, 2>(0.378, 1.46, 3.55),
                              persistent<E, 192, 2>(0.302, 1.25, 3.08),
                              one_tile<E, 1, 2, 1, 128>(0.191, 1.83, 0.02),
                              one_tile<E, 1, 1, 2, 64>(0.172, 1.89, 0.24),
                              one_tile<E, 1, 1, 1, 64>(0.163, 1.81, 0.01),
                              swap<E, 96, 64, 1, 1, 2>(0.272, 1.20, 1.87),
                              swap<E, 72, 128, 2, 1>(0.160, 0.99, 2.33),
                              swap<E, 88, 128, 2, 1>(0.179, 0.81, 2.40),
                              swap<E, 152, 128, 2, 1>(0.271, 1.33, 2.72),
                              swap<E, 160, 128, 1, 2>(0.260, 1.33, 2.88),
                              swap<E, 192, 128, 1, 2>(0.304, 1.37, 3.13),
                              swap<E, 120, 256, 2, 1>(0.365, 2.08, 2.67),
                              swap<E, 168, 256, 2, 1>(0.501, 2.99, 2.88),
                              swap<E, 96, 64, 1, 4>(0.112, 0.58, 2.06),
                              swap<E, 96, 128, 1, 4>(0.168, 0.79, 2.41),
                              swap<E, 64, 64, 4, 1>(0.095, 1.13, 1.22),
                              swap<E, 96, 64, 4, 1>(0.129, 0.57, 1.95),
                              swap<E, 64, 64, 1, 4>(0.105, 0.86, 1.85),
                              swap<E, 32, 128, 1, 4>(0.138, 0.63, 2.05),
                              swap<E, 64, 128, 4, 1>(0.123, 0.89, 2.49),
                              swap<E, 96, 128, 4, 1>(0.158, 0.81, 2.61),
                              swap<E, 112, 128, 1, 2>(0.220, 0.81, 2.66),
                              swap<E, 112, 128, 2, 1>(0.218, 0.99, 2.56),
                              swap<E, 160, 64, 4, 1>(0.217, 0.97, 1.94)};
// Of sum_parts_kernel: its launch, and each byte of the parts' sums.
constexpr double kSumLaunch = 2.57, kSumByte = 0.339e-6;
// Of a, b and c: each byte, if they are more than the L2 cache keeps.
constexpr double kMemoryByte = 0.325e-6, kCachedBytes = 36e6;
// Of the products that run while bytes move, or of the bytes, what is not hidden.
constexpr double kNotHidden = 0.034;
// How much more of `shared` for each of a and b whose rows do not begin at whole
// sectors.
constexpr double kUnaligned = 0.328;
constexpr int64_t kMostSumBytes = int64_t(1) << 29;

// -------------------------------------------------------------------------------------
// The choice

// The fastest plan of one form.
template <typename E>
Plan plan_of(int form, const ladder::MatmulSizes& size) {
  const Form<E>& f = kForms<E>[form];
  int64_t columns = ceil_div(size.n, f.n), tiles = ceil_div(size.m, f.m) * columns,
          steps = ceil_div(size.k, kK), at_once = f.at_once();
  int64_t bytes = 2 * (size.m * size.k + size.k * size.n + size.m * size.n);
  double memory = bytes > kCachedBytes ? bytes * kMemoryByte : 0;
  Plan best = {form, tiles, 1, 0};
  int64_t row_of_b = kE4m3<E> ? size.k : size.n;  // in 16 bits; 16 are a sector
  double shared =
      f.shared * (1 + kUnaligned * ((size.k % 16 > 0) + (row_of_b % 16 > 0)));
  // A step, with the SMs that run on average while `count` pieces of work are done.
  auto step = [&](int64_t count) {
    int64_t waves = std::max<int64_t>(1, ceil_div(count, at_once));
    return f.step * (1 + shared * count / double(waves * at_once));
  };
  // whole: tiles that are not split.
  auto consider = [&](int64_t whole, int parts) {
    int64_t split = tiles - whole, waves = ceil_div(whole, at_once),
            part_waves = ceil_div(split * parts, at_once);
    double sums = parts == 1 ? 0 : 4.0 * split * parts * f.m * f.n;
    if (sums > kMostSumBytes) return;
    double products =
        f.launch + (waves + part_waves) * f.tile +
        waves * ceil_div(steps, f.splits) * step(whole) +
        part_waves * ceil_div(steps, parts * f.splits) * step(split * parts);
    double time = std::max(products, memory) + kNotHidden * std::min(products, memory) +
                  (parts == 1 ? 0 : kSumLaunch + sums * kSumByte);
    if (best.time == 0 || time < best.time) best = {form, whole, parts, time};
  };
  consider(tiles, 1);
  for (int parts : {2, 3, 4, 5, 6, 8, 12, 16, 24, 32}) {
    if (parts * f.splits > steps) break;
    int64_t waves = f.persistent ? tiles / at_once : 0;
    // The last wave alone, or that and the one before.
    for (int64_t whole : {waves, waves - 1}) {
      if (whole >= 0 && whole * at_once < tiles) consider(whole * at_once, parts);
    }
  }
  return best;
}

template <typename E>
Plan fastest_plan(const ladder::MatmulSizes& size) {
  Plan best = {};
  for (int form = 0; form < int(std::size(kForms<E>)); ++form) {
    if (ceil_div(size.k, kK) < kForms<E>[form].splits) continue;
    Plan plan = plan_of<E>(form, size);
    if (best.time == 0 || plan.time < best.time) best = plan;
  }
  return best;
}

// The same, found once for a shape: a model multiplies the same few shapes again and
// again. The current device's; a thread keeps those of some shapes.
template <typename E>
Plan chosen_plan(const ladder::MatmulSizes& size) {
  struct Known {
    int64_t m, n, k;
    int device;
    Plan plan;
  };
  static thread_local Known known[64] = {};
  int device = 0;
  STD_CUDA_CHECK(cudaGetDevice(&device));
  Known& slot = known[(size.m * 31 + size.n * 17 + size.k) / 8 % 64];
  if (slot.m != size.m || slot.n != size.n || slot.k != size.k || slot.device != device)
    slot = {size.m, size.n, size.k, device, fastest_plan<E>(size)};
  return slot.plan;
}

template <typename E>
ladder::MatmulSizes checked(const Tensor& a, const Tensor& b) {
  if constexpr (kE4m3<E>) return hopper::check_factors(a, b);
  return ladder::check_matmul<ladder::BFloat16>(a, b, ladder::Layout::row_major);
}

template <typename E>
Tensor product(const Tensor& a, const Tensor& b, E epilogue) {
  auto size = checked<E>(a, b);
  auto guard = ladder::on_device_of(a);
  Plan plan = chosen_plan<E>(size);
  return kForms<E>[plan.form].run(a, b, plan, epilogue);
}

// -------------------------------------------------------------------------------------
// To check the choice: each form's plan and product

template <typename E>
int check_form(int64_t form, const ladder::MatmulSizes& size) {
  constexpr int count = std::size(kForms<E>);
  STD_TORCH_CHECK(form >= 0 && form < count, "form must be 0 to ", count - 1, ", got ",
                  form);
  STD_TORCH_CHECK(ceil_div(size.k, kK) >= kForms<E>[form].splits, "form ", form,
                  " splits k in ", kForms<E>[form].splits, " parts of at least ", kK,
                  " elements, got k = ", size.k);
  return form;
}

// The form that the choice takes, or the given one; the tiles that stay whole, the
// parts of the others, and the predicted microseconds.
template <typename E>
std::tuple<int64_t, int64_t, int64_t, double> plan_as(const Tensor& a, const Tensor& b,
                                                      int64_t form) {
  auto size = checked<E>(a, b);
  auto guard = ladder::on_device_of(a);
  Plan plan =
      form < 0 ? chosen_plan<E>(size) : plan_of<E>(check_form<E>(form, size), size);
  return {plan.form, plan.whole, plan.parts, plan.time};
}

template <typename E>
Tensor product_as(const Tensor& a, const Tensor& b, E epilogue, int64_t form,
                  int64_t whole, int64_t parts) {
  auto size = checked<E>(a, b);
  auto guard = ladder::on_device_of(a);
  int checked_form = check_form<E>(form, size);
  int64_t most = ceil_div(size.k, kK) / kForms<E>[form].splits;
  STD_TORCH_CHECK(whole >= 0, "whole must be a number of tiles, got ", whole);
  STD_TORCH_CHECK(parts == 1 || (parts > 1 && parts <= most), "parts must be 1 to ",
                  most, ", since each has at least ", kK, " elements of k, got ",
                  parts);
  return kForms<E>[form].run(a, b, {checked_form, whole, int(parts), 0}, epilogue);
}

#ifndef LADDER_NO_CHOICE_OPERATOR

Tensor matmul_choice(const Tensor& a, const Tensor& b) {
  return product(a, b, Identity());
}
Tensor matmul_as(const Tensor& a, const Tensor& b, int64_t form, int64_t whole,
                 int64_t parts) {
  return product_as(a, b, Identity(), form, whole, parts);
}

// -------------------------------------------------------------------------------------
// Registration: torch.ops.<name given to load>.matmul_choice(a, b), for CUDA tensors

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("matmul_choice(Tensor a, Tensor b) -> Tensor");
  m.def("matmul_plan(Tensor a, Tensor b, int form=-1) -> (int, int, int, float)");
  m.def("matmul_as(Tensor a, Tensor b, int form, int whole, int parts) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("matmul_choice", TORCH_BOX(&matmul_choice));
  m.impl("matmul_plan", TORCH_BOX(&plan_as<Identity>));
  m.impl("matmul_as", TORCH_BOX(&matmul_as));
}
#endif
