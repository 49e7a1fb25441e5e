// random_generator.cpp: cuRAND's generators on the host.
//
// A generator draws from many sequences side by side, as the threads of a grid do, and its output goes from one to the
// next: 4,096 sequences of XORWOW, 81,920 of MRG32k3a (in the legacy ordering 4,096), and 65,536 of Philox, which give
// four numbers in turn. A sequence gives two normal numbers in turn, Philox four.
#include <vector>

#include "curand.h"
#include "curand_kernel.h"
#include "simt/library_call.h"
#include "libraries/handle_table.h"

namespace simt::random {
namespace {

struct Generator {
  curandRngType_t type;
  curandOrdering_t ordering = CURAND_ORDERING_PSEUDO_DEFAULT;
  uint64_t seed = 0, offset = 0;

  // Where it is in the output; set up by the first call after a change of the values above.
  bool ready = false;
  uint64_t position = 0;  // of Philox: the index of the next number; otherwise: the sequence that comes next
  std::vector<curandStateXORWOW> xorwow;
  std::vector<curandStateMRG32k3a> mrg;
};

libraries::HandleTable<Generator>& generators() { return lasting<libraries::HandleTable<Generator>>(); }

Generator* find(curandGenerator_t generator) { return generators().find(reinterpret_cast<uintptr_t>(generator)); }

template <typename State>
void start(const Generator& g, std::vector<State>& sequences, uint64_t count) {
  sequences.resize(count);
  curand_init(g.seed, 0, 0, &sequences[0]);
  for (uint64_t i = 1; i < count; ++i) {
    sequences[i] = sequences[i - 1];
    sequences[i].skip_sequence(1);
  }
  for (uint64_t i = 0; i < count; ++i) sequences[i].skip(g.offset / count + (i < g.offset % count));
}

void prepare(Generator& g) {
  if (g.ready) return;
  const bool legacy = g.ordering == CURAND_ORDERING_PSEUDO_LEGACY;
  if (g.type == CURAND_RNG_PSEUDO_XORWOW) start(g, g.xorwow, 4096);
  if (g.type == CURAND_RNG_PSEUDO_MRG32K3A) start(g, g.mrg, legacy ? 4096 : 81920);
  g.position = g.type == CURAND_RNG_PSEUDO_XORWOW     ? g.offset % g.xorwow.size()
               : g.type == CURAND_RNG_PSEUDO_MRG32K3A ? g.offset % g.mrg.size()
                                                      : g.offset;
  g.ready = true;
}

// `width` numbers from each sequence in turn: draw(state, where they go).
template <typename State, typename T, typename Draw>
void fill_in_turn(std::vector<State>& sequences, uint64_t& position, T* out, size_t count, size_t width, Draw draw) {
  for (size_t i = 0; i < count; i += width) {
    draw(&sequences[position], out + i);
    position = (position + 1) % sequences.size();
  }
}

// Philox's state is computed anew for each four numbers, which take `fours` times four words.
template <typename T, typename Draw>
void fill_by_fours(Generator& g, T* out, size_t count, unsigned fours, Draw draw) {
  constexpr uint64_t kSequences = 65536;
  T four[4];
  for (size_t i = 0; i < count; ++i, ++g.position) {
    const uint64_t turn = g.position / 4;
    if (i == 0 || g.position % 4 == 0) {
      curandStatePhilox4_32_10 state;
      curand_init(g.seed, turn % kSequences, turn / kSequences * 4 * fours, &state);
      draw(&state, four);
    }
    out[i] = four[g.position % 4];
  }
}

template <typename T, typename Draw, typename DrawFour>
curandStatus_t generate(const char* function, curandGenerator_t generator, T* out, size_t count, size_t width,
                        unsigned fours, Draw draw, DrawFour draw_four) {
  begin_library_call(function);
  Generator* g = find(generator);
  if (!g) return CURAND_STATUS_NOT_INITIALIZED;
  if (g->type != CURAND_RNG_PSEUDO_PHILOX4_32_10 && count % width) return CURAND_STATUS_LENGTH_NOT_MULTIPLE;
  check_operand(function, "the output", out, count * sizeof(T));
  prepare(*g);
  if (g->type == CURAND_RNG_PSEUDO_XORWOW)
    fill_in_turn(g->xorwow, g->position, out, count, width, draw);
  else if (g->type == CURAND_RNG_PSEUDO_MRG32K3A)
    fill_in_turn(g->mrg, g->position, out, count, width, draw);
  else
    fill_by_fours(*g, out, count, fours, draw_four);
  return CURAND_STATUS_SUCCESS;
}

template <typename T, typename Four>
void store(T* out, const Four& four) {
  out[0] = four.x, out[1] = four.y, out[2] = four.z, out[3] = four.w;
}

template <typename T, typename Shape>
curandStatus_t normal(const char* function, curandGenerator_t generator, T* out, size_t count, Shape shape) {
  constexpr bool wide = std::is_same_v<T, double>;
  return generate(
      function, generator, out, count, 2, wide ? 2 : 1,
      [=](auto* state, T* to) {
        const auto draw = [&](auto pair) { to[0] = shape(pair.x), to[1] = shape(pair.y); };
        wide ? draw(curand_normal2_double(state)) : draw(curand_normal2(state));
      },
      [=](auto* state, T* to) {
        wide ? store(to, curand_normal4_double(state)) : store(to, curand_normal4(state));
        for (int i = 0; i < 4; ++i) to[i] = shape(to[i]);
      });
}

// Changes a setting of a live generator, which then starts again.
template <typename T>
curandStatus_t set(curandGenerator_t generator, T Generator::* field, T value) {
  Generator* g = find(generator);
  if (!g) return CURAND_STATUS_NOT_INITIALIZED;
  g->*field = value;
  g->ready = false;
  return CURAND_STATUS_SUCCESS;
}

[[noreturn]] void unsupported(const std::string& what) {
  throw Fault("unsupported", "not supported by the simulator: " + what +
                                 "; use CURAND_RNG_PSEUDO_DEFAULT, _XORWOW, _MRG32K3A or _PHILOX4_32_10 in the default "
                                 "ordering");
}

}  // namespace
}  // namespace simt::random

using simt::random::Generator;

curandStatus_t curandCreateGenerator(curandGenerator_t* generator, curandRngType_t type) {
  simt::begin_library_call("curandCreateGenerator");
  if (!generator) return CURAND_STATUS_OUT_OF_RANGE;
  if (type == CURAND_RNG_PSEUDO_DEFAULT) type = CURAND_RNG_PSEUDO_XORWOW;
  switch (type) {
    case CURAND_RNG_PSEUDO_XORWOW:
    case CURAND_RNG_PSEUDO_MRG32K3A:
    case CURAND_RNG_PSEUDO_PHILOX4_32_10:
      break;
    case CURAND_RNG_PSEUDO_MTGP32:
    case CURAND_RNG_PSEUDO_MT19937:
    case CURAND_RNG_QUASI_DEFAULT:
    case CURAND_RNG_QUASI_SOBOL32:
    case CURAND_RNG_QUASI_SCRAMBLED_SOBOL32:
    case CURAND_RNG_QUASI_SOBOL64:
    case CURAND_RNG_QUASI_SCRAMBLED_SOBOL64:
      simt::random::unsupported("the random generator of number " + std::to_string(type));
    default:
      return CURAND_STATUS_TYPE_ERROR;
  }
  Generator made;
  made.type = type;
  *generator = reinterpret_cast<curandGenerator_t>(simt::random::generators().add(std::move(made)));
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandCreateGeneratorHost(curandGenerator_t* generator, curandRngType_t type) {
  return curandCreateGenerator(generator, type);
}
curandStatus_t curandDestroyGenerator(curandGenerator_t generator) {
  const bool alive = simt::random::generators().remove(reinterpret_cast<uintptr_t>(generator));
  return alive ? CURAND_STATUS_SUCCESS : CURAND_STATUS_NOT_INITIALIZED;
}
curandStatus_t curandGetVersion(int* version) {
  if (!version) return CURAND_STATUS_OUT_OF_RANGE;
  *version = CURAND_VERSION;
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandGetProperty(libraryPropertyType type, int* value) {
  if (!value || type < MAJOR_VERSION || type > PATCH_LEVEL) return CURAND_STATUS_OUT_OF_RANGE;
  *value = type == MAJOR_VERSION ? CURAND_VERSION / 1000 : type == MINOR_VERSION ? CURAND_VERSION / 100 % 10 : 0;
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandSetStream(curandGenerator_t generator, cudaStream_t stream) {
  if (!simt::random::find(generator)) return CURAND_STATUS_NOT_INITIALIZED;
  return simt::stream_exists(stream) ? CURAND_STATUS_SUCCESS : CURAND_STATUS_OUT_OF_RANGE;
}
curandStatus_t curandSetPseudoRandomGeneratorSeed(curandGenerator_t generator, unsigned long long seed) {
  return simt::random::set<uint64_t>(generator, &Generator::seed, seed);
}
curandStatus_t curandSetGeneratorOffset(curandGenerator_t generator, unsigned long long offset) {
  return simt::random::set<uint64_t>(generator, &Generator::offset, offset);
}
curandStatus_t curandSetGeneratorOrdering(curandGenerator_t generator, curandOrdering_t order) {
  if (order == CURAND_ORDERING_PSEUDO_SEEDED || order == CURAND_ORDERING_PSEUDO_DYNAMIC)
    simt::random::unsupported("this ordering of random numbers");
  if (order < CURAND_ORDERING_PSEUDO_BEST || order > CURAND_ORDERING_PSEUDO_LEGACY) return CURAND_STATUS_OUT_OF_RANGE;
  return simt::random::set(generator, &Generator::ordering, order);
}
curandStatus_t curandGenerateSeeds(curandGenerator_t generator) {
  Generator* g = simt::random::find(generator);
  if (!g) return CURAND_STATUS_NOT_INITIALIZED;
  simt::random::prepare(*g);
  return CURAND_STATUS_SUCCESS;
}

curandStatus_t curandGenerate(curandGenerator_t generator, unsigned* out, size_t count) {
  return simt::random::generate(
      "curandGenerate", generator, out, count, 1, 1, [](auto* state, unsigned* to) { *to = curand(state); },
      [](auto* state, unsigned* to) { simt::random::store(to, curand4(state)); });
}
curandStatus_t curandGenerateLongLong(curandGenerator_t generator, unsigned long long*, size_t) {
  return simt::random::find(generator) ? CURAND_STATUS_TYPE_ERROR : CURAND_STATUS_NOT_INITIALIZED;  // for Sobol64 only
}
curandStatus_t curandGenerateUniform(curandGenerator_t generator, float* out, size_t count) {
  return simt::random::generate(
      "curandGenerateUniform", generator, out, count, 1, 1, [](auto* state, float* to) { *to = curand_uniform(state); },
      [](auto* state, float* to) { simt::random::store(to, curand_uniform4(state)); });
}
curandStatus_t curandGenerateUniformDouble(curandGenerator_t generator, double* out, size_t count) {
  return simt::random::generate(
      "curandGenerateUniformDouble", generator, out, count, 1, 2,
      [](auto* state, double* to) { *to = curand_uniform_double(state); },
      [](auto* state, double* to) { simt::random::store(to, curand_uniform4_double(state)); });
}
curandStatus_t curandGenerateNormal(curandGenerator_t generator, float* out, size_t count, float mean, float stddev) {
  return simt::random::normal("curandGenerateNormal", generator, out, count,
                              [=](float x) { return mean + stddev * x; });
}
curandStatus_t curandGenerateNormalDouble(curandGenerator_t generator, double* out, size_t count, double mean,
                                          double stddev) {
  return simt::random::normal("curandGenerateNormalDouble", generator, out, count,
                              [=](double x) { return mean + stddev * x; });
}
curandStatus_t curandGenerateLogNormal(curandGenerator_t generator, float* out, size_t count, float mean,
                                       float stddev) {
  return simt::random::normal("curandGenerateLogNormal", generator, out, count,
                              [=](float x) { return expf(mean + stddev * x); });
}
curandStatus_t curandGenerateLogNormalDouble(curandGenerator_t generator, double* out, size_t count, double mean,
                                             double stddev) {
  return simt::random::normal("curandGenerateLogNormalDouble", generator, out, count,
                              [=](double x) { return exp(mean + stddev * x); });
}
curandStatus_t curandGeneratePoisson(curandGenerator_t generator, unsigned* out, size_t count, double lambda) {
  if (!(lambda > 0)) return CURAND_STATUS_OUT_OF_RANGE;
  return simt::random::generate(
      "curandGeneratePoisson", generator, out, count, 1, 64,
      [=](auto* state, unsigned* to) { *to = curand_poisson(state, lambda); },
      [=](auto* state, unsigned* to) { simt::random::store(to, curand_poisson4(state, lambda)); });
}
