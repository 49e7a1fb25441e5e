// cub.cu: CUB's collectives of warps and blocks in kernels, and its functions for whole arrays.
#include <cub/cub.cuh>

#include "case.h"

namespace {

struct Add {
  template <typename T>
  __host__ __device__ T operator()(const T& a, const T& b) const {
    return a + b;
  }
};
struct Larger {
  __host__ __device__ int operator()(int a, int b) const { return a < b ? b : a; }
};
// Not commutative: composes x -> a x + b, modulo 2^32.
struct Line {
  unsigned a, b;
};
struct Compose {
  __host__ __device__ Line operator()(const Line& f, const Line& g) const { return {f.a * g.a, f.b * g.a + g.b}; }
};

constexpr int kThreads = 96;  // three warps
constexpr int kItems = 3;

}  // namespace

// ------------------------------------------------------------------------------------------------------------------
// Warps

template <int width>
__global__ void warp_kernel(const int* in, int* out) {
  using Reduce = cub::WarpReduce<int, width>;
  using Scan = cub::WarpScan<int, width>;
  __shared__ typename Reduce::TempStorage reduce_storage[64 / width];
  __shared__ typename Scan::TempStorage scan_storage[64 / width];
  const int t = threadIdx.x, group = t / width;
  const int x = in[t];
  int sum = Reduce(reduce_storage[group]).Sum(x), total, part, inclusive, exclusive, from;
  int most = Reduce(reduce_storage[group]).Reduce(x, Larger());
  part = Reduce(reduce_storage[group]).Sum(x, width - 1);
  Scan(scan_storage[group]).InclusiveSum(x, inclusive, total);
  Scan(scan_storage[group]).ExclusiveSum(x, exclusive);
  Scan(scan_storage[group]).ExclusiveScan(x, from, -100, Larger());
  const bool first = t % width == 0;  // only the first lane's reductions are defined
  int* row = out + 7 * t;
  store_all(row, first ? sum : 0, first ? most : 0, first ? part : 0, inclusive, total, exclusive, from);
}
CASE(warps) {
  if (call.number(0) == 32) warp_kernel<32><<<1, 64>>>(call.data<int>(0), call.data<int>(1));
  if (call.number(0) == 8) warp_kernel<8><<<1, 64>>>(call.data<int>(0), call.data<int>(1));
}

// ------------------------------------------------------------------------------------------------------------------
// Blocks

__global__ void reduce_kernel(const int* in, const Line* lines, int valid, int* out, Line* composed) {
  using Ints = cub::BlockReduce<int, 32, cub::BLOCK_REDUCE_WARP_REDUCTIONS, 3>;
  using Lines = cub::BlockReduce<Line, 32, cub::BLOCK_REDUCE_RAKING, 3>;
  __shared__ union {
    typename Ints::TempStorage ints;
    typename Lines::TempStorage lines;
  } storage;
  const int t = threadIdx.y * 32 + threadIdx.x;
  int items[kItems];
  for (int i = 0; i < kItems; ++i) items[i] = in[t * kItems + i];
  const int sum = Ints(storage.ints).Sum(items[0]);
  __syncthreads();
  const int all = Ints(storage.ints).Sum(items);
  __syncthreads();
  const int most = Ints(storage.ints).Reduce(items[0], Larger(), valid);
  __syncthreads();
  const Line line = Lines(storage.lines).Reduce(lines[t], Compose());
  if (t == 0) {
    store_all(out, sum, all, most);
    *composed = line;
  }
}
CASE(block_reduce) { RUN(reduce_kernel, 1, dim3(32, 3)); }

struct Running {  // what precedes a tile; counts its calls
  int total;
  __device__ int operator()(int aggregate) {
    const int before = total;
    total += aggregate;
    return before;
  }
};

// Rows of `out`: kThreads * kItems values each.
__global__ void scan_kernel(const int* in, const Line* lines, int* out, Line* composed) {
  using Scan = cub::BlockScan<int, kThreads>;
  using LineScan = cub::BlockScan<Line, kThreads, cub::BLOCK_SCAN_WARP_SCANS>;
  __shared__ union {
    typename Scan::TempStorage ints;
    typename LineScan::TempStorage lines;
  } storage;
  const int t = threadIdx.x, n = kThreads * kItems;
  int items[kItems], result[kItems], one, total;
  for (int i = 0; i < kItems; ++i) items[i] = in[t * kItems + i];
  auto store = [&](int row) {
    for (int i = 0; i < kItems; ++i) out[row * n + t * kItems + i] = result[i];
    __syncthreads();
  };
  Scan(storage.ints).InclusiveSum(items, result);
  store(0);
  Scan(storage.ints).ExclusiveSum(items, result, total);
  store(1);
  Scan(storage.ints).ExclusiveScan(items, result, -100, Larger());
  store(2);
  Running running{1000};
  Scan(storage.ints).ExclusiveSum(items, result, running);
  store(3);
  Scan(storage.ints).InclusiveSum(items, result, running);
  store(4);
  Scan(storage.ints).InclusiveScan(items, result, Larger());
  store(5);
  Scan(storage.ints).InclusiveSum(items[0], one, result[0]);
  result[1] = one;
  result[2] = total;
  store(6);
  Line before, through;
  LineScan(storage.lines).ExclusiveScan(lines[t], before, Line{1, 0}, Compose());
  __syncthreads();
  LineScan(storage.lines).InclusiveScan(lines[t], through, Compose());
  composed[2 * t] = before;
  composed[2 * t + 1] = through;
}
// What scans of other libraries are made of: each thread of one warp adds the segment that it rakes.
template <int threads>
__global__ void raking_kernel(const int* in, int* out) {
  using Layout = cub::BlockRakingLayout<int, threads>;
  __shared__ typename Layout::TempStorage storage;
  *Layout::PlacementPtr(storage, threadIdx.x) = in[threadIdx.x];
  __syncthreads();
  if (threadIdx.x >= Layout::RAKING_THREADS) return;
  const int* segment = Layout::RakingPtr(storage, threadIdx.x);
  out[threadIdx.x] = 0;
  for (int i = 0; i < Layout::SEGMENT_LENGTH; ++i) out[threadIdx.x] += segment[i];
}
CASE(raking) {
  static_assert(cub::Log2<8>::VALUE == 3 && cub::Log2<9>::VALUE == 4 && cub::Log2<1>::VALUE == 0);
  raking_kernel<64><<<1, 64>>>(call.data<int>(0), call.data<int>(1));
  raking_kernel<128><<<1, 128>>>(call.data<int>(0), call.data<int>(1) + 32);
}

CASE(block_scan) { RUN(scan_kernel, 1, kThreads); }

template <cub::BlockLoadAlgorithm loads, cub::BlockStoreAlgorithm stores>
__global__ void copy_kernel(const float* in, int valid, float* arranged, float* out) {
  using Load = cub::BlockLoad<float, kThreads, kItems, loads>;
  using Store = cub::BlockStore<float, kThreads, kItems, stores>;
  __shared__ union {
    typename Load::TempStorage load;
    typename Store::TempStorage store;
  } storage;
  const int first = blockIdx.x * kThreads * kItems;
  float items[kItems];
  Load(storage.load).Load(in + first, items, valid - first, -1.0f);
  for (int i = 0; i < kItems; ++i) arranged[first + threadIdx.x * kItems + i] = items[i];
  __syncthreads();
  Store(storage.store).Store(out + first, items, valid - first);
}
CASE(block_copy) {
  const float* in = call.data<float>(0);
  float *arranged = call.data<float>(1), *out = call.data<float>(2);
  const int valid = call.size(0), blocks = (valid + kThreads * kItems - 1) / (kThreads * kItems);
  if (call.number(0) == 0)
    copy_kernel<cub::BLOCK_LOAD_DIRECT, cub::BLOCK_STORE_DIRECT><<<blocks, kThreads>>>(in, valid, arranged, out);
  if (call.number(0) == 1)
    copy_kernel<cub::BLOCK_LOAD_STRIPED, cub::BLOCK_STORE_STRIPED><<<blocks, kThreads>>>(in, valid, arranged, out);
  if (call.number(0) == 2)
    copy_kernel<cub::BLOCK_LOAD_TRANSPOSE, cub::BLOCK_STORE_TRANSPOSE><<<blocks, kThreads>>>(in, valid, arranged, out);
  if (call.number(0) == 3)
    copy_kernel<cub::BLOCK_LOAD_WARP_TRANSPOSE, cub::BLOCK_STORE_WARP_TRANSPOSE>
        <<<blocks, kThreads>>>(in, valid, arranged, out);
}

template <typename Key>
__global__ void sort_kernel(Key* keys, int* values, int begin, int end, bool descending, bool striped) {
  using Sort = cub::BlockRadixSort<Key, kThreads, kItems, int>;
  __shared__ typename Sort::TempStorage storage;
  Key own[kItems];
  int own_values[kItems];
  for (int i = 0; i < kItems; ++i) {
    own[i] = keys[threadIdx.x * kItems + i];
    own_values[i] = values[threadIdx.x * kItems + i];
  }
  if (striped)
    Sort(storage).SortBlockedToStriped(own, own_values, begin, end);
  else if (descending)
    Sort(storage).SortDescending(own, own_values, begin, end);
  else
    Sort(storage).Sort(own, own_values, begin, end);
  for (int i = 0; i < kItems; ++i) {
    const int place = striped ? i * kThreads + threadIdx.x : threadIdx.x * kItems + i;
    keys[place] = own[i];
    values[place] = own_values[i];
  }
}
CASE(block_sort) {  // type, begin, end, descending, striped
  with_type<int, unsigned, float, double, unsigned char, long long>(call.number(0), [&](auto zero) {
    sort_kernel<<<1, kThreads>>>(call.data<decltype(zero)>(0), call.data<int>(1), static_cast<int>(call.number(1)),
                                 static_cast<int>(call.number(2)), call.number(3) != 0, call.number(4) != 0);
  });
}

struct Differ {
  __device__ bool operator()(int a, int b) const { return a != b; }
};
__global__ void others_kernel(const int* in, int* heads, int* tails, int* counts, int* exchanged) {
  using Flags = cub::BlockDiscontinuity<int, kThreads>;
  using Counts = cub::BlockHistogram<int, kThreads, kItems, 8>;
  using Exchange = cub::BlockExchange<int, kThreads, kItems>;
  __shared__ union {
    typename Flags::TempStorage flags;
    typename Counts::TempStorage counts;
    typename Exchange::TempStorage exchange;
  } storage;
  __shared__ int histogram[8];
  int items[kItems], flags[kItems];
  const int first = threadIdx.x * kItems;
  for (int i = 0; i < kItems; ++i) items[i] = in[first + i];
  Flags(storage.flags).FlagHeads(flags, items, Differ());
  for (int i = 0; i < kItems; ++i) heads[first + i] = flags[i];
  __syncthreads();
  Flags(storage.flags).FlagTails(flags, items, Differ());
  for (int i = 0; i < kItems; ++i) tails[first + i] = flags[i];
  __syncthreads();
  Exchange(storage.exchange).BlockedToStriped(items, flags);
  for (int i = 0; i < kItems; ++i) exchanged[first + i] = flags[i];
  __syncthreads();
  Counts(storage.counts).Histogram(items, histogram);
  __syncthreads();
  if (threadIdx.x < 8) counts[threadIdx.x] = histogram[threadIdx.x];
}
CASE(block_others) { RUN(others_kernel, 1, kThreads); }

// The storage of a reduction used twice: a race unless a barrier is between.
__global__ void reuse_kernel(const int* in, int* out, bool with_barrier) {
  using Reduce = cub::BlockReduce<int, kThreads>;
  __shared__ typename Reduce::TempStorage storage;
  const int first = Reduce(storage).Sum(in[threadIdx.x]);
  if (with_barrier) __syncthreads();
  const int second = Reduce(storage).Sum(in[threadIdx.x + kThreads]);
  if (threadIdx.x == 0) {
    out[0] = first;
    out[1] = second;
  }
}
CASE(reuse) { reuse_kernel<<<1, kThreads>>>(call.data<int>(0), call.data<int>(1), call.number(0) != 0); }

// ------------------------------------------------------------------------------------------------------------------
// Whole arrays

namespace {

// Calls a function of CUB twice: for the size of its storage, then with storage of that size.
template <typename Function>
void with_storage(Function function) {
  void* storage = nullptr;
  size_t bytes = 0;
  EXPECT_SUCCESS(function(storage, bytes));
  EXPECT_SUCCESS(cudaMalloc(&storage, bytes));
  EXPECT_SUCCESS(function(storage, bytes));
  EXPECT_SUCCESS(cudaFree(storage));
}
#define WITH_STORAGE(function, ...) \
  with_storage([&](void* storage, size_t& bytes) { return function(storage, bytes, __VA_ARGS__); })

}  // namespace

CASE(device_reduce) {
  const float* in = call.data<float>(0);
  const int n = call.size(0);
  float* out = call.data<float>(1);
  WITH_STORAGE(cub::DeviceReduce::Sum, in, out, n);
  WITH_STORAGE(cub::DeviceReduce::Max, in, out + 1, n);
  WITH_STORAGE(cub::DeviceReduce::Min, in, out + 2, n);
  WITH_STORAGE(cub::DeviceReduce::Reduce, in, out + 3, n, Add(), 10.0f);
}

CASE(device_reduce_by_key) {
  WITH_STORAGE(cub::DeviceReduce::ReduceByKey, call.data<int>(0), call.data<int>(2), call.data<int>(1),
               call.data<int>(3), call.data<int>(4), Add(), call.size(0));
}

CASE(device_segmented_reduce) {
  const int* offsets = call.data<int>(1);
  WITH_STORAGE(cub::DeviceSegmentedReduce::Sum, call.data<int>(0), call.data<int>(2), call.size(2), offsets,
               offsets + 1);
  WITH_STORAGE(cub::DeviceSegmentedReduce::Reduce, call.data<int>(0), call.data<int>(3), call.size(2), offsets,
               offsets + 1, Larger(), -1000);
}

CASE(device_scan) {  // rows of `out`; the last one is scanned in place
  const int* in = call.data<int>(0);
  const int n = call.size(0);
  int *keys = call.data<int>(1), *out = call.data<int>(2);
  WITH_STORAGE(cub::DeviceScan::InclusiveSum, in, out, n);
  WITH_STORAGE(cub::DeviceScan::ExclusiveSum, in, out + n, n);
  WITH_STORAGE(cub::DeviceScan::InclusiveScan, in, out + 2 * n, Larger(), n);
  WITH_STORAGE(cub::DeviceScan::ExclusiveScan, in, out + 3 * n, Larger(), -1000, n);
  WITH_STORAGE(cub::DeviceScan::InclusiveSumByKey, keys, in, out + 4 * n, n);
  WITH_STORAGE(cub::DeviceScan::ExclusiveSumByKey, keys, in, out + 5 * n, n);
  EXPECT_SUCCESS(cudaMemcpy(out + 6 * n, in, n * sizeof(int), cudaMemcpyDefault));
  WITH_STORAGE(cub::DeviceScan::ExclusiveSum, out + 6 * n, out + 6 * n, n);
}

CASE(device_sort) {  // type, begin, end, descending; keys, values, sorted keys, sorted values
  with_type<int, unsigned, float, double, unsigned char, long long>(call.number(0), [&](auto zero) {
    using Key = decltype(zero);
    Key *keys = call.data<Key>(0), *out = call.data<Key>(2);
    int *values = call.data<int>(1), *values_out = call.data<int>(3);
    const int n = call.size(0), begin = static_cast<int>(call.number(1)), end = static_cast<int>(call.number(2));
    with_storage([&](void* s, size_t& b) {
      return call.number(3)
                 ? cub::DeviceRadixSort::SortPairsDescending(s, b, keys, out, values, values_out, n, begin, end)
                 : cub::DeviceRadixSort::SortPairs(s, b, keys, out, values, values_out, n, begin, end);
    });
    cub::DoubleBuffer<Key> buffer(keys, out);  // sorts the keys again, and may leave them in either array
    WITH_STORAGE(cub::DeviceRadixSort::SortKeys, buffer, n);
    EXPECT(buffer.Current() == keys || buffer.Current() == out);
    std::vector<Key> host(n);
    EXPECT_SUCCESS(cudaMemcpy(host.data(), buffer.Current(), n * sizeof(Key), cudaMemcpyDefault));
    for (int i = 1; i < n; ++i) EXPECT(!(host[i] < host[i - 1]));
    with_storage([&](void* s, size_t& b) {  // the case's answer once more, in case it was overwritten
      const Key* from = buffer.Current();
      return cub::DeviceRadixSort::SortKeys(s, b, from, buffer.Alternate(), n);
    });
  });
}

struct Less {
  __host__ __device__ bool operator()(int a, int b) const { return a % 10 < b % 10; }
};
CASE(device_merge_sort) {
  WITH_STORAGE(cub::DeviceMergeSort::StableSortPairs, call.data<int>(0), call.data<int>(1), call.size(0), Less());
}

CASE(device_segmented_sort) {
  const int* offsets = call.data<int>(1);
  WITH_STORAGE(cub::DeviceSegmentedRadixSort::SortKeys, call.data<int>(0), call.data<int>(2), call.size(0),
               call.size(1) - 1, offsets, offsets + 1);
}

struct Odd {
  __host__ __device__ bool operator()(int x) const { return x % 2 != 0; }
};
CASE(device_select) {  // in, flags; rows of out, counts
  const int *in = call.data<int>(0), n = call.size(0);
  int *flags = call.data<int>(1), *out = call.data<int>(2), *counts = call.data<int>(3);
  WITH_STORAGE(cub::DeviceSelect::Flagged, in, flags, out, counts, n);
  WITH_STORAGE(cub::DeviceSelect::If, in, out + n, counts + 1, n, Odd());
  WITH_STORAGE(cub::DeviceSelect::Unique, in, out + 2 * n, counts + 2, n);
  WITH_STORAGE(cub::DevicePartition::If, in, out + 3 * n, counts + 3, n, Odd());
  WITH_STORAGE(cub::DeviceRunLengthEncode::Encode, in, out + 4 * n, out + 5 * n, counts + 4, n);
}

CASE(device_histogram) {
  WITH_STORAGE(cub::DeviceHistogram::HistogramEven, call.data<float>(0), call.data<int>(2), 6, 0.0f, 10.0f,
               call.size(0));
  WITH_STORAGE(cub::DeviceHistogram::HistogramRange, call.data<float>(0), call.data<int>(3), call.size(1),
               call.data<float>(1), call.size(0));
}

#ifdef __SIMT__
CASE(mistakes) {
  int *in, *out;
  EXPECT_SUCCESS(cudaMalloc(&in, 40));
  EXPECT_SUCCESS(cudaMalloc(&out, 40));
  void* storage = nullptr;
  size_t bytes = 0;
  EXPECT_SUCCESS(cub::DeviceReduce::Sum(storage, bytes, in, out, 11));
  EXPECT_SUCCESS(cudaMalloc(&storage, bytes));
  size_t less = bytes - 1;
  EXPECT(cub::DeviceReduce::Sum(storage, less, in, out, 10) == cudaErrorInvalidValue);
  cudaStream_t stream;
  EXPECT_SUCCESS(cudaStreamCreate(&stream));
  EXPECT_SUCCESS(cudaStreamDestroy(stream));
  EXPECT(cub::DeviceReduce::Sum(storage, bytes, in, out, 10, stream) == cudaErrorInvalidResourceHandle);
  cub::DeviceReduce::Sum(storage, bytes, in, out, 11);
}

// What CUDA 13 has under other names.
CASE(older_names) {
  const int n = call.size(0);
  int* out = call.data<int>(1);
  const cub::CountingInputIterator<int> indices(5);
  struct Square {
    int operator()(int x) const { return x * x; }
  };
  cub::TransformInputIterator<int, Square, int*> squares(call.data<int>(0), Square());
  WITH_STORAGE(cub::DeviceReduce::Sum, indices, out, n);
  WITH_STORAGE(cub::DeviceReduce::Reduce, squares, out + 1, n, cub::Max(), 0);
  cub::KeyValuePair<int, int> best;
  WITH_STORAGE(cub::DeviceReduce::ArgMax, call.data<int>(0), &best, n);
  store_all(out + 2, best.key, best.value);
}
#endif
