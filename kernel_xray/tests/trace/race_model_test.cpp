// The race detector's model, compiled alone: vector clocks, slots, happens-before and shadow memory. Each rule is checked
// from both sides: the order that it gives, and the nearest case that it does not order. test_race_model.py also compiles
// this program against headers with one planted error each, which it has to notice.
#include <cstdio>
#include <initializer_list>

#include "trace/regions.h"
#include "trace/shadow_memory.h"

using namespace simt::trace;
using simt::Scope;

static int failures = 0;
#define CHECK(condition)                                              \
  do {                                                                \
    if (!(condition)) {                                               \
      ++failures;                                                     \
      std::printf("%s:%d: not %s\n", __FILE__, __LINE__, #condition); \
    }                                                                 \
  } while (0)

static VectorClock clock_of(Epoch epoch) {
  VectorClock clock(8);
  clock.raise(epoch);
  return clock;
}

static void vector_clocks() {
  VectorClock empty;
  CHECK(empty.empty() && !empty.knows({0, 0}));
  VectorClock a = clock_of({2, 5});
  CHECK(a.knows({2, 4}) && a.knows({2, 5}) && !a.knows({2, 6}) && !a.knows({1, 1}));
  a.raise({2, 3});
  CHECK(a.knows({2, 5}));

  VectorClock b = clock_of({2, 7});
  b.raise({3, 1});
  VectorClock ab = a, ba = b;
  ab.join(b);
  ba.join(a);
  for (const VectorClock& joined : {ab, ba})
    CHECK(joined.knows({2, 7}) && !joined.knows({2, 8}) && joined.knows({3, 1}) && !joined.knows({3, 2}));
  a.join(empty);
  empty.join(a);
  CHECK(empty.knows({2, 5}) && !empty.knows({2, 6}));
}

static void release_and_acquire() {
  VectorClock one = clock_of({1, 1}), two = clock_of({2, 1}), three = clock_of({3, 1}), first_lock, second_lock;
  one.release(first_lock);
  one.raise({1, 2});  // after its release
  two.acquire(first_lock);
  two.release(second_lock);
  three.acquire(second_lock);
  CHECK(two.knows({1, 1}) && !two.knows({1, 2}));
  CHECK(three.knows({1, 1}) && three.knows({2, 1}) && !three.knows({1, 2}));  // transitive
  CHECK(!one.knows({2, 1}) && !two.knows({3, 1}));                            // and in one direction
}

static void proxies() {
  ProxyClocks writer{clock_of({1, 1}), VectorClock(8)}, reader, lock;
  writer.release(lock);
  reader.acquire(lock);
  CHECK(reader.generic.knows({1, 1}) && !reader.async.knows({1, 1}));
  writer.fence();
  CHECK(writer.async.knows({1, 1}) && !writer.async.knows({1, 2}));
  writer.release(lock);
  reader.acquire(lock);
  CHECK(reader.async.knows({1, 1}));
}

static void grid_clocks() {
  GridClock grid;
  const auto knows = [](const GridClock& g, uint64_t block, uint32_t phase, Epoch epoch) {
    return g.knows(block, phase, epoch, false);
  };
  CHECK(grid.empty() && !knows(grid, 7, 0, {3, 1}));
  grid.raise(7, 2, {3, 5});
  CHECK(knows(grid, 7, 1, {4, 99}));  // an earlier phase, of any thread
  CHECK(knows(grid, 7, 2, {3, 5}) && !knows(grid, 7, 2, {3, 6}) && !knows(grid, 7, 2, {4, 1}) &&
        !knows(grid, 7, 3, {3, 1}));
  CHECK(!knows(grid, 8, 0, {3, 1}));
  grid.raise(7, 2, {1, 4});  // several threads of a block release in one phase
  CHECK(knows(grid, 7, 2, {3, 5}) && knows(grid, 7, 2, {1, 4}) && !knows(grid, 7, 2, {1, 5}) &&
        !knows(grid, 7, 2, {2, 1}));
  GridClock other;
  other.raise(7, 2, {3, 6});
  other.join(grid);
  CHECK(knows(other, 7, 2, {3, 6}) && knows(other, 7, 2, {1, 4}));
  grid.join(other);
  CHECK(knows(grid, 7, 2, {3, 6}));
  GridClock later;
  later.raise(7, 3, {2, 1});
  grid.join(later);
  CHECK(knows(grid, 7, 2, {9, 9}) && knows(grid, 7, 3, {2, 1}) && !knows(grid, 7, 3, {3, 5}));
  later.join(other);
  CHECK(!knows(later, 7, 3, {3, 6}) && knows(later, 7, 3, {2, 1}));  // of an earlier phase: nothing new

  GridClock strong;
  strong.raise(7, 2, {3, 5});
  strong.raise_strong(7, {3, 8});
  CHECK(strong.knows(7, 4, {3, 8}, true) && !strong.knows(7, 4, {3, 9}, true) && !strong.knows(7, 4, {2, 1}, true));
  CHECK(!strong.knows(7, 2, {3, 8}, false) && !strong.knows(7, 4, {3, 8}, false));
  later.join(strong);
  CHECK(later.knows(7, 9, {3, 8}, true) && later.knows(7, 3, {2, 1}, false));
}

static void slots() {
  const Slots slots(40);  // 64 for threads, 64 for their stores, 64 for loads
  CHECK(slots.shift() == 8);
  CHECK(slots.thread(39) == 39 && slots.thread(40) == 256 && slots.rank(slots.thread(40)) == 1);
  CHECK(slots.store(0) == 64 && slots.store(39) == 103 && slots.load(0, 0) == 128 && slots.load(1, 63) == 256 + 191);
  CHECK(slots.is_load(slots.load(1, 0)) && !slots.is_load(slots.store(39)) && !slots.is_load(slots.thread(0)));
  CHECK(slots.thread_of(slots.store(39)) == 39 && slots.thread_of(slots.thread(41)) == 1);
}

// ---------------------------------------------------------------------------------------------------------------
// A grid of clusters with two blocks of 64 threads: slots 0-63 and 256-319

constexpr unsigned kShift = 8, kSlots = 2 << kShift;

struct Actor {  // an accessor that owns its clocks
  uint32_t cluster = 0, phase = 0, clock = 1, slot = 0;
  Agent agent = Agent::thread;
  WarpClock warp{};
  GridClock block_grid, thread_grid;
  ProxyClocks clocks{};

  explicit Actor(uint32_t s, Agent a = Agent::thread) : slot(s), agent(a) {}
  Accessor operator()() {
    return {cluster, phase, clock, slot, &warp, &block_grid, &thread_grid, &clocks, agent, false};
  }
  void learn(Epoch epoch, bool fenced = false) {
    if (clocks.empty()) clocks = {VectorClock(kSlots), VectorClock(kSlots)};
    clocks.generic.raise(epoch);
    if (fenced) clocks.fence();
  }
};

static Access by(Actor actor) {
  Access access;
  access.cluster = actor.cluster;
  access.phase = actor.agent == Agent::tma ? Access::kNoPhase : actor.phase;
  access.clock = actor.clock;
  access.slot = static_cast<uint16_t>(actor.slot);
  access.agent = actor.agent;
  return access;
}

static bool ordered(const Actor& before, Actor now) { return happens_before(by(before), now(), kShift); }

static void orders_within_a_cluster() {
  Actor one(1), two(2), other_warp(33), other_block(257);
  CHECK(ordered(one, one));  // program order
  CHECK(!ordered(one, two) && !ordered(one, other_warp) && !ordered(one, other_block));

  two.phase = other_warp.phase = other_block.phase = 1;  // a __syncthreads of each block
  CHECK(ordered(one, two) && ordered(one, other_warp) && !ordered(one, other_block));
  one.phase = 1;
  CHECK(!ordered(one, two) && !ordered(one, other_warp));

  two.warp.of[1] = other_warp.warp.of[1] = 1;  // __syncwarp: lane 1 of the own warp
  CHECK(ordered(one, two) && !ordered(one, other_warp));
  one.clock = 2;
  CHECK(!ordered(one, two));

  Actor locked(2);  // a lock, released after a fence
  locked.thread_grid.raise(block_of(0, 1, kShift), 1, {1, 2});
  CHECK(ordered(one, locked) && !ordered(other_warp, locked));
  two.learn({1, 2});  // an mbarrier, or the cluster's barrier
  other_block.learn({1, 1});
  CHECK(ordered(one, two) && !ordered(one, other_block));
}

static void orders_of_units() {
  Actor thread(1), load(128, Agent::tma), store(65, Agent::tma), product(1, Agent::wgmma), later(1);
  later.phase = 1;
  later.warp.of[0] = later.warp.of[1] = 9;
  CHECK(!ordered(load, later) && !ordered(store, later));  // no barrier of threads orders TMA
  later.learn({128, 1});
  CHECK(ordered(load, later) && !ordered(store, later));
  CHECK(ordered(product, later) && ordered(thread, product));  // wgmma has the order of its thread
  load.phase = 1;
  CHECK(!ordered(thread, load));
  load.learn({1, 1});
  CHECK(ordered(thread, load));
}

static void orders_between_clusters() {
  Actor one(1), two(1);
  two.cluster = 4;
  CHECK(!ordered(one, two));
  two.phase = 1;
  two.warp.of[1] = 1;
  two.learn({1, 1});
  CHECK(!ordered(one, two));  // what orders threads of a cluster does not count
  two.thread_grid.raise(block_of(0, 1, kShift), 0, {1, 1});
  CHECK(ordered(one, two));
  one.clock = 2;
  CHECK(!ordered(one, two));
  two.block_grid.raise(block_of(0, 1, kShift), 1, {5, 1});
  CHECK(ordered(one, two));
  one.slot = 257;  // the other block of that cluster
  CHECK(!ordered(one, two));
}

// ---------------------------------------------------------------------------------------------------------------
// Shadow memory

struct Memory {
  ShadowMemory shadow;
  Memory() { shadow.begin_cluster(kShift); }
  const Race* access(Actor actor, Kind kind, uint64_t address = 0, unsigned size = 4, uint16_t value = 0) {
    return shadow.access(actor(), event(actor, kind, address, size, value));
  }
  static Event event(const Actor& actor, Kind kind, uint64_t address = 0, unsigned size = 4, uint16_t value = 0) {
    Event event{};
    event.key = Event::make_key(0, actor.slot, kind, size);
    event.address = address;
    event.size = static_cast<uint8_t>(size);
    event.kind = kind;
    if (kind == Kind::atomic) event.scope = Scope::device;
    event.value = value;
    return event;
  }
};

static void plain_accesses() {
  for (const Kind first : {Kind::load, Kind::store, Kind::atomic})
    for (const Kind second : {Kind::load, Kind::store, Kind::atomic}) {
      const bool conflict = first != second || first == Kind::store;
      Actor one(1), two(2), after(2);
      after.phase = 1;
      Memory unordered, ordered;
      CHECK(!unordered.access(one, first) && !ordered.access(one, first));
      const Race* race = unordered.access(two, second);
      CHECK(!race == !conflict);
      if (race)
        CHECK(race->before.slot == 1 && race->before.kind() == first && race->before.pc() == 1 && !race->unfenced);
      CHECK(!ordered.access(after, second));
    }
}

// The slot of the reader that races with the writer's store after these loads, -1 if there is none.
static int racing_reader(std::initializer_list<Actor> readers, const Actor& writer) {
  Memory memory;
  for (const Actor& reader : readers) memory.access(reader, Kind::load);
  const Race* race = memory.access(writer, Kind::store);
  return race ? race->before.slot : -1;
}

static void readers() {
  const Actor one(1), same_warp(2), other_warp(40);
  CHECK(racing_reader({one, same_warp}, one) == 2);  // the writer is the first reader: another lane has read
  Actor synchronised(1);
  synchronised.warp.of[2] = 1;  // the writer has synchronised with its warp: another warp has read
  CHECK(racing_reader({one, same_warp, other_warp}, synchronised) == 40);
  Actor after(3), writer(2);  // a reader that is ordered after the last one replaces it
  after.phase = writer.phase = 1;
  CHECK(racing_reader({same_warp, after}, writer) == 3);
}

static void atomics() {
  Actor one(1), two(2), reader(3);
  Memory memory;
  memory.access(one, Kind::atomic);
  memory.access(two, Kind::atomic);
  reader.warp.of[2] = 1;  // ordered after the second update, not after the first
  const Race* race = memory.access(reader, Kind::load);
  CHECK(race && race->before.slot == 1);
  Memory both;
  both.access(one, Kind::atomic);
  both.access(two, Kind::atomic);
  reader.warp.of[1] = 1;
  CHECK(!both.access(reader, Kind::load));
}

static void strong_accesses() {
  Actor one(1), two(2), three(3);
  Event flag = Memory::event(one, Kind::store), poll = Memory::event(two, Kind::load);
  flag.scope = poll.scope = Scope::device;  // volatile
  Memory memory;
  CHECK(!memory.shadow.access(one(), flag) && !memory.shadow.access(two(), poll) && !memory.shadow.access(two(), flag));
  CHECK(memory.access(three, Kind::load) && memory.access(three, Kind::store));
  Memory polled;
  polled.shadow.access(two(), poll);
  CHECK(!polled.access(one, Kind::atomic) && polled.access(three, Kind::store));
}

static void scopes() {
  Actor one(1), same_block(40), same_cluster(257), elsewhere(1);
  elsewhere.cluster = 2;
  const Scope all[] = {Scope::block, Scope::cluster, Scope::device};
  for (const Actor& two : {same_block, same_cluster, elsewhere})
    for (const Scope first : all)
      for (const Scope second : all)
        for (const Kind kind : {Kind::load, Kind::store, Kind::atomic}) {
          Memory memory;
          Event before = Memory::event(one, kind, kGlobalStart), now = Memory::event(two, Kind::atomic, kGlobalStart);
          before.scope = first;
          now.scope = second;
          memory.shadow.access(Actor(one)(), before);
          const Race* race = memory.shadow.access(Actor(two)(), now);
          const Scope needed = two.cluster ? Scope::device : two.slot == 257 ? Scope::cluster : Scope::block;
          CHECK(!race == (std::min(first, second) >= needed));
          CHECK(!race || (race->narrow && race->before.kind() == kind && race->before.scope() == first));
        }
  Memory reads;  // two reads do not race
  for (const Actor& each : {one, elsewhere}) {
    Event read = Memory::event(each, Kind::load, kGlobalStart);
    read.scope = Scope::block;
    CHECK(!reads.shadow.access(Actor(each)(), read));
  }
  Memory plain;  // a race of plain accesses is none of scopes
  plain.access(one, Kind::store);
  const Race* race = plain.access(same_block, Kind::atomic);
  CHECK(race && !race->narrow);
}

static void validated_reads() {
  Actor one(1), two(2), other_warp(40), swapper(1);
  const Event swap = Memory::event(swapper, Kind::atomic, 0, 8);
  for (const Actor& reader : {one, two, other_warp}) {
    Memory memory, left;
    for (Memory* both : {&memory, &left})
      for (const Actor& each : {one, two, other_warp}) both->access(each, Kind::load);
    for (const Actor& each : {one, two, other_warp})
      if (each.slot != reader.slot) memory.shadow.validate(Actor(each)(), swap);
    const Race* race = memory.access(Actor(7), Kind::atomic);
    CHECK(race && race->before.slot == reader.slot);
    memory.shadow.validate(Actor(reader)(), swap);
    CHECK(!memory.access(Actor(7), Kind::atomic) && left.access(Actor(7), Kind::atomic));
    CHECK(memory.access(Actor(8), Kind::store));  // a plain write still races with them
  }
}

static void same_values() {
  Actor one(1), two(2), three(3);
  Memory memory;
  memory.access(one, Kind::store, 0, 4, 77);
  const Race* race = memory.access(two, Kind::store, 0, 4, 77);
  CHECK(race && race->same_value);
  race = memory.access(three, Kind::store, 0, 4, 78);
  CHECK(race && !race->same_value);
  Memory unknown;
  unknown.access(one, Kind::store);
  race = unknown.access(two, Kind::store);
  CHECK(race && !race->same_value);  // 0: the values are not known
  Memory read;
  read.access(one, Kind::store, 0, 4, 77);
  read.access(three, Kind::load, 4);
  race = read.access(two, Kind::store, 0, 8, 77);  // the same value as one, and a plain race with the reader
  CHECK(race && !race->same_value && race->before.slot == 3);
}

static void sizes() {
  Actor one(1), two(2);
  Memory memory;
  memory.access(one, Kind::store, 64, 16);
  CHECK(!memory.access(two, Kind::load, 63, 1) && !memory.access(two, Kind::load, 80, 4));
  CHECK(memory.access(two, Kind::load, 79, 1) && memory.access(two, Kind::load, 72, 8));
  Memory bytes;
  bytes.access(one, Kind::store, 101, 1);
  CHECK(!bytes.access(two, Kind::store, 100, 1) && !bytes.access(two, Kind::store, 102, 2));
  CHECK(bytes.access(two, Kind::load, 100, 4));
}

static void fences() {
  Actor writer(1), unfenced(128, Agent::tma), fenced(129, Agent::tma), thread(2);
  unfenced.learn({1, 1});
  fenced.learn({1, 1}, true);
  thread.learn({1, 1});
  Memory memory;
  memory.access(writer, Kind::store);
  CHECK(!memory.access(thread, Kind::load));
  CHECK(!memory.access(fenced, Kind::load));
  const Race* race = memory.access(unfenced, Kind::load);
  CHECK(race && race->unfenced);
  Actor stranger(130, Agent::tma);
  stranger.learn({5, 1}, true);
  race = memory.access(stranger, Kind::load);
  CHECK(race && !race->unfenced);
}

static void clusters() {
  Actor one(1), next(1);
  next.cluster = 2;
  Memory memory;
  memory.access(one, Kind::store, 16);
  memory.access(one, Kind::store, kGlobalStart + 16);
  memory.shadow.begin_cluster(kShift);
  CHECK(!memory.access(next, Kind::load, 16));                // shared memory ends with its cluster
  CHECK(memory.access(next, Kind::load, kGlobalStart + 16));  // global memory does not
}

int main() {
  for (const auto test : {vector_clocks, release_and_acquire, proxies, grid_clocks, slots, orders_within_a_cluster,
                          orders_of_units, orders_between_clusters, plain_accesses, readers, atomics, strong_accesses,
                          scopes, validated_reads, same_values, sizes, fences, clusters})
    test();
  std::puts(failures ? "wrong" : "all right");
  return failures != 0;
}
