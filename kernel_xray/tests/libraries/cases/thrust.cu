// thrust.cu: Thrust's vectors and algorithms, alone and with kernels of our own on the same memory.
#include <thrust/binary_search.h>
#include <thrust/count.h>
#include <thrust/device_free.h>
#include <thrust/device_malloc.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/extrema.h>
#include <thrust/functional.h>
#include <thrust/gather.h>
#include <thrust/host_vector.h>
#include <thrust/inner_product.h>
#include <thrust/iterator/constant_iterator.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/random.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/transform_reduce.h>
#include <thrust/tuple.h>
#include <thrust/unique.h>

#include "case.h"

namespace {

struct Square {
  __host__ __device__ int operator()(int x) const { return x * x; }
};
struct Odd {
  __host__ __device__ bool operator()(int x) const { return x % 2 != 0; }
};
struct Saxpy {
  float a;
  __host__ __device__ float operator()(float x, float y) const { return a * x + y; }
};

template <typename T>
void copy_out(const thrust::device_vector<T>& from, T* to) {
  thrust::copy(from.begin(), from.end(), thrust::device_pointer_cast(to));
}

}  // namespace

CASE(sort) {  // keys; sorted ascending, sorted descending, and the places from which the ascending ones came
  const int n = call.size(0);
  const thrust::device_ptr<int> keys(call.data<int>(0));
  thrust::device_vector<int> sorted(keys, keys + n), places(n);
  thrust::sequence(places.begin(), places.end());
  thrust::stable_sort_by_key(sorted.begin(), sorted.end(), places.begin());
  copy_out(sorted, call.data<int>(1));
  copy_out(places, call.data<int>(3));
  thrust::sort(thrust::device, sorted.begin(), sorted.end(), thrust::greater<int>());
  copy_out(sorted, call.data<int>(2));
}

CASE(reductions) {  // ints; out
  const int n = call.size(0);
  int* raw = call.data<int>(0);
  const thrust::device_ptr<int> x(raw);
  thrust::host_vector<int> out;
  out.push_back(thrust::reduce(x, x + n));
  out.push_back(thrust::reduce(thrust::device, raw, raw + n, -1000, thrust::maximum<int>()));
  out.push_back(thrust::transform_reduce(x, x + n, Square(), 0, thrust::plus<int>()));
  out.push_back(thrust::inner_product(x, x + n, thrust::make_counting_iterator(1), 0));
  out.push_back(static_cast<int>(thrust::count_if(x, x + n, Odd())));
  out.push_back(static_cast<int>(thrust::min_element(x, x + n) - x));
  auto squares = thrust::make_transform_iterator(x, Square());
  out.push_back(thrust::reduce(squares, squares + n));
  thrust::copy(out.begin(), out.end(), thrust::device_pointer_cast(call.data<int>(1)));
}

CASE(long_sum) {  // of a float repeated
  const auto x = thrust::make_constant_iterator(0.1f);
  const float sum = thrust::reduce(x, x + 3000000);
  *call.data<float>(0) = sum;
}

CASE(scans) {  // x; inclusive sums, exclusive sums from 5, running maxima
  const int n = call.size(0);
  const thrust::device_ptr<int> x(call.data<int>(0));
  int* out = call.data<int>(1);
  const thrust::device_ptr<int> to(out);
  thrust::inclusive_scan(x, x + n, to);
  thrust::exclusive_scan(x, x + n, to + n, 5);
  thrust::inclusive_scan(x, x + n, to + 2 * n, thrust::maximum<int>());
}

CASE(transforms) {  // x, y; a x + y, then sums of pairs through a zip, then a gather in reverse
  const int n = call.size(0);
  const thrust::device_ptr<float> x(call.data<float>(0)), y(call.data<float>(1)), out(call.data<float>(2));
  thrust::transform(x, x + n, y, out, Saxpy{2.5f});
  auto pairs = thrust::make_zip_iterator(thrust::make_tuple(x, y));
  thrust::transform(pairs, pairs + n, out + n, [] __host__ __device__(thrust::tuple<float, float> t) {
    return thrust::get<0>(t) + thrust::get<1>(t);
  });
  thrust::device_vector<int> map(n);
  thrust::sequence(map.rbegin(), map.rend());
  thrust::gather(map.begin(), map.end(), x, out + 2 * n);
}

CASE(by_key) {  // sorted keys, values; unique keys, their sums, the number of them
  const int n = call.size(0);
  const thrust::device_ptr<int> keys(call.data<int>(0)), values(call.data<int>(1));
  const thrust::device_ptr<int> unique(call.data<int>(2)), sums(call.data<int>(3));
  const auto ends = thrust::reduce_by_key(keys, keys + n, values, unique, sums);
  thrust::device_vector<int> copy(keys, keys + n);
  const auto last = thrust::unique(copy.begin(), copy.end());
  EXPECT(last - copy.begin() == ends.first - unique);
  const thrust::device_vector<int> count(1, static_cast<int>(ends.first - unique));
  copy_out(count, call.data<int>(4));
}

// ------------------------------------------------------------------------------------------------------------------
// With kernels

__global__ void scale_kernel(const float* x, float* y, int n, float factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = factor * x[i];
}

// A kernel reads one vector and writes another, and Thrust reads what it wrote; `beyond` threads run off the end.
CASE(vectors_and_kernels) {
  const int n = call.size(0), beyond = static_cast<int>(call.number(0));
  const thrust::device_ptr<float> from(call.data<float>(0));
  thrust::device_vector<float> x(from, from + n), y(n);
  scale_kernel<<<(n + beyond + 127) / 128, 128>>>(thrust::raw_pointer_cast(x.data()),
                                                  thrust::raw_pointer_cast(y.data()), n + beyond, 2.0f);
  EXPECT_SUCCESS(cudaDeviceSynchronize());
  y[0] = y[0] + 1;  // element access from the host
  thrust::sort(y.begin(), y.end());
  copy_out(y, call.data<float>(1));

  thrust::device_ptr<float> z = thrust::device_malloc<float>(n);
  scale_kernel<<<(n + 127) / 128, 128>>>(thrust::raw_pointer_cast(y.data()), thrust::raw_pointer_cast(z), n, 0.5f);
  EXPECT_SUCCESS(cudaDeviceSynchronize());
  thrust::copy(z, z + n, thrust::device_pointer_cast(call.data<float>(2)));
  thrust::device_free(z);
}

CASE(memory) {
  thrust::device_vector<float> x(1000);
  thrust::host_vector<float> h(1000);
  cudaPointerAttributes attributes;
  EXPECT_SUCCESS(cudaPointerGetAttributes(&attributes, thrust::raw_pointer_cast(x.data())));
  EXPECT(attributes.type == cudaMemoryTypeDevice);
  EXPECT_SUCCESS(cudaPointerGetAttributes(&attributes, h.data()));
  EXPECT(attributes.type == cudaMemoryTypeUnregistered);
  EXPECT(thrust::reduce(x.begin(), x.end()) == 0);  // a vector begins with zeros
  cudaStream_t stream;
  EXPECT_SUCCESS(cudaStreamCreate(&stream));
  thrust::fill(thrust::cuda::par.on(stream), x.begin(), x.end(), 2.0f);
  EXPECT(thrust::reduce(thrust::cuda::par.on(stream), x.begin(), x.end()) == 2000);
  EXPECT_SUCCESS(cudaStreamDestroy(stream));
  x.resize(3);
  const thrust::host_vector<float> back = x;
  EXPECT(back.size() == 3 && back[2] == 2);
}

// Thrust in a kernel: each thread sorts its own row.
__global__ void rows_kernel(int* rows, int columns) {
  int* row = rows + threadIdx.x * columns;
  thrust::sort(thrust::seq, row, row + columns);
}
CASE(in_kernel) {
  rows_kernel<<<1, static_cast<unsigned>(call.number(0))>>>(call.data<int>(0), static_cast<int>(call.number(1)));
}

// Random numbers, of which the host can make the same.
struct Uniform {
  __host__ __device__ float operator()(unsigned n) const {
    thrust::default_random_engine engine(7);
    engine.discard(n);
    return thrust::uniform_real_distribution<float>(0, 1)(engine);
  }
};
CASE(random) {
  const int n = call.size(0);
  const auto indices = thrust::make_counting_iterator(0u);
  thrust::transform(thrust::device, indices, indices + n, thrust::device_pointer_cast(call.data<float>(0)), Uniform());
}
