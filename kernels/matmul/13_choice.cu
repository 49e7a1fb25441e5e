// 13_choice.cu: c = a @ b in bfloat16 for a caller: of eight forms of matmul_cluster
// and matmul_split, the one whose predicted time is least. One rung.
//
// A form is a kernel and a tile. Its time follows from how often each SM must work:
//
//   waves  SMs that have no tile wait for those that have: 144 tiles for 66 clusters
//          take as long as 198. A form whose tiles fill the last wave wins
//   steps  64 along k for one tile. A larger tile takes fewer bytes for each product
//   parts  the tiles of the last waves may be split along k, so that all SMs have some
//          of it. Their sums in float32 are written, read and added up
//
//   time = launch + waves * tile + waves * steps of a tile * step + parts' sums
//
// `step`, `tile` and `launch` of a form are measured: fitted, in microseconds, to 886
// times of these forms at 76 shapes on an H200. For 38 shapes that such a fit had not
// seen, the form that it chose took 2.5% longer than the fastest of all (mean; at most
// 22%). Other GPUs of compute capability 9.0 were not measured: the choice is as good
// there as their clocks and memory scale together. The number of SMs is asked for.
//
// What limits it: tiles of n = 64, 128, 192 and 256 alone. For 1536 x 1536 no form
// fills more than 96 of 132 SMs.
//
// Needs compute capability 9.0: build with -gencode=arch=compute_90a,code=sm_90a.

#include <torch/csrc/stable/library.h>

#define LADDER_NO_SPLIT_OPERATOR
#include "../matmul/12_split.cu"

#include "hopper_matmul.h"
#include "hopper_parts.h"

// -------------------------------------------------------------------------------------
// Forms

// How a product is launched: tiles from number `whole` on have `parts` parts.
struct Plan {
  int form;
  int64_t whole;
  int parts;
  double time;  // predicted, in microseconds
};

struct Form {
  int m, n, splits;  // a cluster's tile; parts of k that the cluster itself adds up
  bool persistent;   // whether a cluster does several tiles: the first may stay whole
  double step, tile, launch;
  int (*at_once)();  // how many clusters the GPU runs
  Tensor (*run)(const Tensor& a, const Tensor& b, const Plan& plan);
};

template <int n, int cluster>
constexpr Form persistent(double step, double tile, double launch) {
  using F = TileConfig<n, cluster>;
  return {cluster * kM,
          n,
          1,
          true,
          step,
          tile,
          launch,
          [] {
            return std::max(
                1, ladder::device_attribute(cudaDevAttrMultiProcessorCount) / cluster);
          },
          [](const Tensor& a, const Tensor& b, const Plan& plan) {
            return run<StoreMode::overlapped, Identity, F>(a, b, {}, nullptr,
                                                           plan.whole, plan.parts);
          }};
}

template <int groups, int rows, int splits, int n>
constexpr Form one_tile(double step, double tile, double launch) {
  using F = small::Config<groups, rows, 1, splits, n>;
  return {rows * F::m,
          n,
          splits,
          false,
          step,
          tile,
          launch,
          [] { return std::max(1, small::resident_clusters<F>()); },
          [](const Tensor& a, const Tensor& b, const Plan& plan) {
            return small::run_config<F>(a, b, plan.parts);
          }};
}

constexpr Form kForms[] = {
    persistent<256, 2>(0.795, 0.95, 2.91),    persistent<192, 2>(0.609, 1.03, 2.50),
    persistent<128, 2>(0.457, 0.46, 2.96),    persistent<256, 1>(0.878, 1.05, 3.17),
    one_tile<1, 2, 1, 128>(0.237, 2.60, 0),   one_tile<2, 1, 2, 64>(0.315, 3.08, 0.67),
    one_tile<1, 1, 2, 64>(0.218, 2.52, 0.58), one_tile<1, 1, 1, 64>(0.209, 2.38, 0.11)};
constexpr int kFormCount = std::size(kForms);
// Of sum_parts_kernel: its launch, and each byte of the parts' sums.
constexpr double kSumLaunch = 2.02, kSumByte = 0.435e-6;
constexpr int64_t kMostSumBytes = int64_t(1) << 29;

// -------------------------------------------------------------------------------------
// The choice

// The fastest plan of one form.
Plan plan_of(int form, const ladder::MatmulSizes& size) {
  const Form& f = kForms[form];
  int64_t tiles = ceil_div(size.m, f.m) * ceil_div(size.n, f.n),
          steps = ceil_div(size.k, kK), at_once = f.at_once();
  Plan best = {form, tiles, 1, 0};
  // whole: tiles that are not split.
  auto consider = [&](int64_t whole, int parts) {
    int64_t split = tiles - whole, waves = ceil_div(whole, at_once),
            part_waves = ceil_div(split * parts, at_once);
    double sums = parts == 1 ? 0 : 4.0 * split * parts * f.m * f.n;
    if (sums > kMostSumBytes) return;
    double time = f.launch + (waves + part_waves) * f.tile +
                  (waves * ceil_div(steps, f.splits) +
                   part_waves * ceil_div(steps, parts * f.splits)) *
                      f.step +
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

Plan fastest_plan(const ladder::MatmulSizes& size) {
  Plan best = {};
  for (int form = 0; form < kFormCount; ++form) {
    if (ceil_div(size.k, kK) < kForms[form].splits) continue;
    Plan plan = plan_of(form, size);
    if (best.time == 0 || plan.time < best.time) best = plan;
  }
  return best;
}

ladder::MatmulSizes checked(const Tensor& a, const Tensor& b) {
  return ladder::check_matmul<ladder::BFloat16>(a, b, ladder::Layout::row_major);
}

Tensor matmul_choice(const Tensor& a, const Tensor& b) {
  auto size = checked(a, b);
  auto guard = ladder::on_device_of(a);
  Plan plan = fastest_plan(size);
  return kForms[plan.form].run(a, b, plan);
}

// -------------------------------------------------------------------------------------
// To check the choice: each form's plan and product

int check_form(int64_t form, const ladder::MatmulSizes& size) {
  STD_TORCH_CHECK(form >= 0 && form < kFormCount, "form must be 0 to ", kFormCount - 1,
                  ", got ", form);
  STD_TORCH_CHECK(ceil_div(size.k, kK) >= kForms[form].splits, "form ", form,
                  " splits k in ", kForms[form].splits, " parts of at least ", kK,
                  " elements, got k = ", size.k);
  return form;
}

// The form that matmul_choice takes, or the given one; the tiles that stay whole, the
// parts of the others, and the predicted microseconds.
std::tuple<int64_t, int64_t, int64_t, double> matmul_plan(const Tensor& a,
                                                          const Tensor& b,
                                                          int64_t form) {
  auto size = checked(a, b);
  auto guard = ladder::on_device_of(a);
  Plan plan = form < 0 ? fastest_plan(size) : plan_of(check_form(form, size), size);
  return {plan.form, plan.whole, plan.parts, plan.time};
}

Tensor matmul_as(const Tensor& a, const Tensor& b, int64_t form, int64_t whole,
                 int64_t parts) {
  auto size = checked(a, b);
  auto guard = ladder::on_device_of(a);
  int checked_form = check_form(form, size);
  STD_TORCH_CHECK(whole >= 0, "whole must be a number of tiles, got ", whole);
  STD_TORCH_CHECK(parts >= 1 && parts * kForms[form].splits <=
                                    std::max<int64_t>(1, ceil_div(size.k, kK)),
                  "parts must be 1 to ", ceil_div(size.k, kK) / kForms[form].splits,
                  ", since each has at least ", kK, " elements of k, got ", parts);
  return kForms[form].run(a, b, {checked_form, whole, int(parts), 0});
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
  m.impl("matmul_plan", TORCH_BOX(&matmul_plan));
  m.impl("matmul_as", TORCH_BOX(&matmul_as));
}
