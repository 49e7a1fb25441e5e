// races.cpp: release clocks of atomic variables, the text of a race's report, and reads of memory that nothing has
// written.
#include "trace/races.h"

namespace simt::trace {

namespace {
std::string text(uint3 v) {
  return "(" + std::to_string(v.x) + ", " + std::to_string(v.y) + ", " + std::to_string(v.z) + ")";
}
}  // namespace

void ReleaseClocks::begin_cluster() {
  narrow_.clear();
  for (auto it = clocks_.begin(); it != clocks_.end();)
    it = it->first < kGlobalStart ? clocks_.erase(it) : std::next(it);
}

void ReleaseClocks::update(const Accessor& accessor, Clocks& clocks, unsigned i, const Event& event) {
  const unsigned rank = clocks.slots().rank(accessor.slot);
  const Part parts[] = {{event.address, Scope::block, rank}, {event.address, Scope::cluster, 0}};
  GridClock& released = clocks_[event.address];
  accessor.thread_grid->join(released);
  for (const Part& part : parts)
    if (const auto it = narrow_.find(part); it != narrow_.end()) accessor.thread_grid->join(it->second);
  if (event.kind == Kind::load) return;
  bool fenced = event.scope == Scope::device && clocks.release(i, Scope::device, released);
  if (event.scope != Scope::device || clocks.narrow_fences())
    for (const Part& part : parts)
      if (const Scope scope = std::get<Scope>(part); scope <= event.scope)
        fenced |= clocks.release(i, scope, narrow_[part]);
  if (fenced) clocks.tick(i);
}

void Races::begin_cluster() {
  shadow_.begin_cluster(clocks_.slots().shift());
  released_.begin_cluster();
  issuers_.clear();
  held_.clear();
  remote_.clear();
}

// ---------------------------------------------------------------------------------------------------------------
// Compare-and-swap loops

namespace {
constexpr uint64_t kSwapBytes = 8;  // the most that atomicCAS compares
}

// Reports a race, or holds it back while a compare-and-swap of the reader may still excuse it.
void Races::judge(const Observed& observed) {
  const Access& before = observed.race.before;
  const Event& event = observed.event;
  const bool now_reads = event.kind == Kind::load && !event.strong() && before.strong();
  const bool before_read = before.kind() == Kind::load && !before.strong() && event.strong();
  if (!now_reads && !(before_read && before.cluster == cluster_.number)) return report(observed);
  held_[{now_reads ? observed.slot : before.slot, event.address / kSwapBytes}].push_back(observed);
}

void Races::validate(const Accessor& accessor, unsigned i, const Event& swap) {
  shadow_.validate(accessor, swap);
  for (const Event* event = &swap; event-- != cluster_.lane(i).record;) {
    if (event->kind == Kind::step || event->kind == Kind::fence || event->address != swap.address) continue;
    if (event->kind == Kind::load && event->size == swap.size) first_reads_.insert(event->pc());
    break;
  }
  held_.erase({accessor.slot, swap.address / kSwapBytes});
}

// Whether the race is the plain read of a compare-and-swap loop that ended without its atomicCAS.
bool Races::ends_a_loop(const Observed& observed) const {
  const Access& before = observed.race.before;
  const Event& event = observed.event;
  const bool now_reads = event.kind == Kind::load;
  return (now_reads ? before.swap() : event.form == Form::swap && before.kind() == Kind::load) &&
         first_reads_.count(now_reads ? event.pc() : before.pc());
}

void Races::end_cluster() {
  for (const auto& [reader, races] : held_)
    for (const Observed& observed : races) report(observed);
  held_.clear();
  if (!cluster_.unwatched) check_ends();
}

// ---------------------------------------------------------------------------------------------------------------
// The kernel before

void Races::check_before(const Accessor& accessor, unsigned i, const Event& event) {
  if (event.region->space != Space::global || accessor.clocks->generic.knows({clocks_.slots().before(), 1})) return;
  if (!accessor.block_grid->empty() || !accessor.thread_grid->empty())
    return;  // a block that has waited may have told it
  const Access* other = before_->conflict(event);
  if (!other) return;
  Finding* found = cluster_.place("race", event.pc(), other->pc(), i);
  if (!found) return;
  const bool reads = event.kind == Kind::load, read = other->kind() == Kind::load;
  found->message = std::string(reads                       ? "a read of "
                               : event.kind == Kind::store ? "a write to "
                                                           : "an atomic update of ") +
                   event.region->name +
                   (read ? ", which a kernel before reads, " : ", which a kernel before writes, ") +
                   "comes before that kernel's end: this one may begin early, and no griddepcontrol.wait comes first";
}

std::shared_ptr<const KernelBefore> Races::take_for_next() {
  if (!lets_next_begin_) return nullptr;
  return std::make_shared<const KernelBefore>(cluster_.job.config.stream, std::move(shadow_), cluster_.session.regions,
                                              overlaps_ ? before_ : nullptr);
}

// ---------------------------------------------------------------------------------------------------------------
// The end of a block

void Races::note_remote(const Accessor& accessor, unsigned i, const Event& event) {
  if (event.region->space != Space::shared) return;
  const auto rank = static_cast<unsigned>(event.address / kSharedLimit);
  if (rank == cluster_.rank_of(i)) return;
  const uint32_t phase = beside(accessor.agent) ? Access::kNoPhase : accessor.phase;
  remote_[{rank, accessor.slot}] = {{Access::origin_of(event), accessor.cluster, phase, accessor.clock,
                                     static_cast<uint16_t>(accessor.slot), Access::what_of(event), accessor.agent},
                                    i};
}

// Whether the access happens before the end of a thread of the block, and so before that of the block.
bool Races::ends_after(unsigned rank, const Access& access) {
  const unsigned first = rank * cluster_.block_threads;
  for (unsigned j = first; j < first + cluster_.block_threads; ++j)
    if (happens_before(access, clocks_.thread(j), clocks_.slots().shift())) return true;
  return false;
}

void Races::check_ends() {
  for (const auto& [place, last] : remote_) {
    const auto& [access, i] = last;
    const unsigned rank = place.first;
    const bool has_ended = cluster_.worker.blocks[rank].alive == 0 && cluster_.fault.kind == "deadlock";
    if ((cluster_.failed && !has_ended) || ends_after(rank, access)) continue;
    Finding* found = cluster_.place("race", access.pc(), 0, i);
    if (!found) continue;
    const uint3 block = index_in(cluster_.number_of(cluster_.number, rank), cluster_.job.config.grid);
    found->message = std::string(access.kind() == Kind::load    ? "a read of"
                                 : access.kind() == Kind::store ? "a write to"
                                                                : "an atomic update of") +
                     " the shared memory of block " + text(block) +
                     " may come when that block has ended: nothing orders it before that block's end, such as a "
                     "barrier of the cluster (barrier.cluster, cluster.sync())";
  }
}

// ---------------------------------------------------------------------------------------------------------------
// The report

namespace {

struct Side {  // of a race
  uint64_t pc;
  Kind kind;
  enum By { thread, load, store, send, wgmma, tcgen05 } by;
  uint64_t block;
  unsigned index;  // of the thread that made the access, or that issued it to a unit

  // The order in which the two ran is chance. The report names the reader first, or the access later in the code.
  auto order() const { return std::make_tuple(kind != Kind::load, ~pc, block, index); }
  const char* noun() const {
    if (by == load) return "load of a tile";
    if (by == store) return "store of a tile";
    if (by == send) return "send of a value";
    if (by == wgmma) return "wgmma's read";
    if (by == tcgen05) return "tcgen05.mma's read";
    return kind == Kind::load ? "read" : kind == Kind::store ? "write" : "atomic update";
  }
  const char* preposition() const {
    if (by == load || by == store || by == send) return kind == Kind::load ? "from" : "into";
    return kind == Kind::store ? "to" : "of";
  }
};

Side::By side_of(Agent agent, bool is_load, bool is_sent) {
  if (agent == Agent::tma) return is_sent ? Side::send : is_load ? Side::load : Side::store;
  return agent == Agent::tcgen05 ? Side::tcgen05 : agent == Agent::wgmma ? Side::wgmma : Side::thread;
}

const char* too_narrow(Scope scope) {
  return scope == Scope::block
             ? ". An atomic with _block (atomicAdd_block), thread_scope_block or .cta is atomic within one block only: "
               "where several blocks use the same memory, use atomicAdd, thread_scope_device or .gpu"
             : ". An atomic with .cluster is atomic within one cluster only: where several clusters use the same "
               "memory, use .gpu";
}

}  // namespace

void Races::report(const Observed& observed) {
  const auto& [race, slot, agent, i, event] = observed;
  const Access& before = race.before;
  const Slots& slots = clocks_.slots();
  const dim3 grid = cluster_.job.config.grid, size = cluster_.job.config.block;
  Side one{event.pc(), event.kind, side_of(agent, slots.is_load(slot), is_sent(slot)),
           cluster_.number_of(cluster_.number, cluster_.rank_of(i)), cluster_.index_of(i)};
  Side two{before.pc(), before.kind(), side_of(before.agent, slots.is_load(before.slot), is_sent(before.slot)),
           cluster_.number_of(before.cluster, issuer(before).rank), issuer(before).thread};
  if (two.order() < one.order()) std::swap(one, two);
  const bool excused = ends_a_loop(observed);
  Finding* found = cluster_.place_at("race", one.pc, two.pc, one.block, one.index, race.harmless() || excused);
  if (!found) return;
  found->rank = one.kind != Kind::load;
  found->block = index_in(one.block, grid);
  found->thread = index_in(one.index, size);
  const std::string article = one.kind == Kind::atomic && one.by == Side::thread ? "an " : "a ";
  const bool elsewhere = one.block != two.block;
  const std::string whose = elsewhere ? "block " + text(index_in(two.block, grid)) : "the same block";
  const char* reason =
      race.narrow ? too_narrow(std::min(event.scope, before.scope()))
      : race.copied
          ? ": no fence.proxy.async lies between cp.async and wgmma. Kernels do without it on Hopper; PTX asks "
            "for it"
      : race.unfenced   ? ": no fence makes what threads write known to units (fence.proxy.async)"
      : race.same_value ? ": both write the same value, so their order does not matter, but only atomic or volatile "
                          "writes are defined"
      : excused ? ": a loop with atomicCAS ends early on this plain read. To the memory model that is a race; the "
                  "read gets an old or a new value, and a volatile one is defined"
      : elsewhere && clocks_.narrow_fences()
          ? ": nothing orders the two. __threadfence_block() orders accesses for its own block only; where another "
            "block reads them, use __threadfence()"
          : ": nothing orders the two";
  found->message = article + one.noun() + " " + one.preposition() + " " + event.region->name + " races with the " +
                   two.noun() + " by thread " + text(index_in(two.index, size)) + " of " + whose + reason;
}

// The thread that made an access or issued it to a unit. For a TMA load by an earlier cluster it is not known: 0.
Races::Issuer Races::issuer(const Access& access) const {
  const Slots& slots = clocks_.slots();
  const unsigned rank = slots.rank(access.slot);
  if (!slots.is_load(access.slot)) return {rank, slots.thread_of(access.slot), false};
  const auto it = access.cluster == cluster_.number ? issuers_.find(access.slot) : issuers_.end();
  return it == issuers_.end() ? Issuer{rank, 0, false} : it->second;
}

bool Races::is_sent(unsigned slot) const {
  const auto it = issuers_.find(slot);
  return it != issuers_.end() && it->second.sends;
}

// ---------------------------------------------------------------------------------------------------------------
// Uninitialised reads

void Races::check_fresh(unsigned i, const Event& event) {
  Region& region = *event.region;
  const uint64_t offset = event.address - region.virtual_start;
  const uint16_t written = region.written_before(offset, event.size, event.kind != Kind::load);
  const auto all = static_cast<uint16_t>((1u << event.size) - 1);
  if (event.kind == Kind::store || event.form == Form::exchange || written == all) return;
  if (Finding* found = cluster_.place("uninitialised-read", event.pc(), 0, i))
    found->message = (event.kind == Kind::load ? "reads " : "atomically updates ") + std::to_string(event.size) +
                     (event.size == 1 ? " byte" : " bytes") + " of " + region.name + ", " + std::to_string(offset) +
                     " bytes into it, which nothing has written";
}

}  // namespace simt::trace
